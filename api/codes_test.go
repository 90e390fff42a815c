package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
	"example.com/twinbox/test/testkit"
)

var codeFiles = []string{
	"../internal/web/problem.go",
	"../internal/command/problem.go",
	"../internal/domain/input.go",
	"../internal/customer/problems.go",
}

// No answer of this API has these codes.
var elsewhere = []string{"host_not_allowed", "invalid_mail_id", "invalid_time"}

func TestDocumentedCodesAreTheOnesInTheCode(t *testing.T) {
	t.Parallel()
	var declared []string
	for _, file := range codeFiles {
		codes := declaredCodes(t, file)
		require.NotEmpty(t, codes, file)
		declared = append(declared, codes...)
	}
	declared = slices.DeleteFunc(declared, func(code string) bool { return slices.Contains(elsewhere, code) })
	slices.Sort(declared) // a rule and the race for it may share a code
	documented := slices.Sorted(maps.Keys(testkit.ProblemStatuses(t, api.OpenAPI)))
	require.Equal(t, documented, slices.Compact(declared))
}

func declaredCodes(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var codes []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !isCodeType(spec.Type) {
			return true
		}
		for _, value := range spec.Values {
			if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				code, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				codes = append(codes, code)
			}
		}
		return true
	})
	return codes
}

func isCodeType(expression ast.Expr) bool {
	switch named := expression.(type) {
	case *ast.Ident:
		return named.Name == "Code"
	case *ast.SelectorExpr:
		return strings.HasSuffix(named.Sel.Name, "Code")
	}
	return false
}
