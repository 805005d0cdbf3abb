"""What the template imports and runs before its first child."""

PRELOAD = (
    "numpy", "numpy.random", "numpy.linalg", "sympy",
    "bisect", "cmath", "collections", "copy", "dataclasses", "datetime", "decimal", "fractions", "functools",
    "heapq", "itertools", "json", "math", "operator", "random", "re", "statistics", "string", "textwrap",
    "threading", "time", "typing",
)  # fmt: skip
"""Modules that code written by a model imports most; those not installed are left out."""

WARMUP = '''
try:
    import numpy
    numpy.linalg.det(numpy.eye(3)), numpy.linalg.solve(numpy.eye(2), numpy.ones(2)), repr(numpy.arange(3.0))
except ImportError:
    pass
try:
    import sympy
    x, y = sympy.symbols("x y")
    sympy.solve(x**2 - 3 * x + 2, x)
    sympy.solve([x + y - 3, x - y - 1], [x, y])
    sympy.solve(x**3 - 2 * x + 1, x)
    sympy.integrate(x * sympy.exp(x), x)
    sympy.diff(sympy.sin(x) ** 2, x)
    sympy.simplify(sympy.sin(x) ** 2 + sympy.cos(x) ** 2)
    sympy.factor(x**4 - 1), sympy.expand((x + 1) ** 3), sympy.limit(sympy.sin(x) / x, x, 0)
    sympy.nsimplify(0.25), sympy.Matrix([[1, 2], [3, 4]]).det(), sympy.factorint(360), str(sympy.sqrt(8))
    sympy.latex(x**2), sympy.N(sympy.pi, 20), sympy.sympify("x + 1")
except ImportError:
    pass
'''
"""Fills the caches and late imports of numpy and sympy with the calls that are met most."""
