// The source file that the precompiled header of the tests is made with.
