package local

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"example.com/twinbox/internal/service"
)

// Execute runs one command of a kong grammar and returns the exit code: 0 done, 1 failed, 2 usage, or the error's own.
// Results go to stdout, texts for people to stderr.
func Execute(ctx context.Context, grammar any, args []string, stdout, stderr io.Writer, options ...kong.Option) int {
	exit := -1
	parser := kong.Must(grammar, append(options, kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }), kong.BindTo(ctx, (*context.Context)(nil)))...)
	command, err := parser.Parse(args)
	switch {
	case exit >= 0:
		return exit
	case err != nil:
		err = UsageError(err.Error())
	default:
		err = command.Run()
	}
	if err == nil {
		return service.ExitOK
	}
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", parser.Model.Name, err)
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return service.ExitFailure
}
