"""The engine of the tripy-module template: answers -> plan -> apply -> test -> report."""
