//go:build tools

package operators

import (
	_ "github.com/project-codeflare/appwrapper/cmd"
)
