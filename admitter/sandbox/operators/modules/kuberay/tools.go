//go:build tools

package operators

import (
	_ "github.com/ray-project/kuberay/ray-operator"
)
