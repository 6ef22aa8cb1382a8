//go:build tools

package operators

import (
	_ "sigs.k8s.io/lws/cmd"
)
