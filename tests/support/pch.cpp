// The source file from which the tests' precompiled header is built.
