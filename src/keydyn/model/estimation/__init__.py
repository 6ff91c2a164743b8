"""Algorithm 1, compiled: one fit without leaving machine code.

`tables` names the arrays that a fit works on, `algorithm` is the loop, and each step of it is a file. The
formulas of the maximisation step, of the marginals and of smoothing stand in `formulas` and are the same
functions that `fit.fitting` calls when a family, a callback or a setting needs the open loop there.
"""
