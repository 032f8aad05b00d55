"""How functions are compiled: a kernel is translated to LLVM with its parts, and the result is stored in a cache."""
