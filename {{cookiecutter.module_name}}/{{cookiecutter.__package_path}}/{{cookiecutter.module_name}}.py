{% set root = "templates/" if _copier_conf is defined else "" %}
{% set skeleton = root ~ "module.jinja" %}
{% extends root ~ "recipes/" ~ cookiecutter.recipe ~ ".jinja" %}
