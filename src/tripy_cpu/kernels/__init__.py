"""The operations: each kernel's parameters are the operation's operands and attributes, its body is its definition.

Operands are arrays; attributes are plain data. The order and the names of the parameters are those of the `tensorrt`
dialect, so the recorder binds calls against these signatures.
"""

from tripy_cpu.kernels import combination, elementwise, movement, quantization, spatial
from tripy_cpu.kernels.table import KERNELS, Kernel

__all__ = ["KERNELS", "Kernel", "combination", "elementwise", "movement", "quantization", "spatial"]
