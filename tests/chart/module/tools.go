//go:build tools

// Package helm names the program that the tests build, so that the go command keeps
// its modules in go.mod.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
