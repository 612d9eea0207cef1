"""Scripts that run in the environments of other libraries, and the harness they share with ours."""
