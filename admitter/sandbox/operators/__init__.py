"""Operators of other kinds beside the control plane: optional, each under an account of its own.

`definitions` says what each is built from and how it is started, `programs` builds them, `manifests` reads
what they bring for the API server, `running` starts them.
"""
