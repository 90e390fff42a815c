package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// faces are what the smallest clone's own programs do not call and keep: what the owner's handlers, tests and the dev
// stack do. A name that ends with a dot is a type with all its methods.
var faces = []string{
	"internal/inbox.EventFromContext", "internal/inbox.OnGap", "internal/inbox.PutMetadata", "internal/inbox.Retry",
	"internal/inbox.TxFromContext",
	"internal/lease.Add",
	"internal/outbox.After", "internal/outbox.DueAt", "internal/outbox.KeyOf", "internal/outbox.TypeOf",
	"internal/outbox.VersionOf", "internal/outbox.option",
	"internal/outbox/operate.ReadStatus",
	"internal/command.Retry", "internal/config.Format.Check",
	"internal/service/eventing.Described.", "internal/service/eventing.Instance.",
	"internal/service/eventing.Service.Describe",
}

const deadFormat = `-f={{range .Funcs}}{{$.Path}}.{{.Name}}{{"\n"}}{{end}}`

// testDead fails where parts that are gone have left functions behind that no program of the clone can reach.
func testDead(ctx context.Context, dir, module string) error {
	listed, err := run(ctx, dir, []string{"GOWORK=off", "CGO_ENABLED=0"}, "go", "tool", "-modfile=tools.mod", "deadcode",
		deadFormat, "./cmd/...")
	if err != nil {
		return err
	}
	if left := leftBehind(listed, module); len(left) > 0 {
		return fmt.Errorf("no program reaches these any more, so mark them as the part's, or name them in dead.go: %s",
			strings.Join(left, ", "))
	}
	return nil
}

// leftBehind are the functions in deadcode's list that are no faces.
func leftBehind(listed, module string) (left []string) {
	for name := range strings.FieldsSeq(listed) {
		name = strings.TrimPrefix(name, module+"/")
		if !slices.ContainsFunc(faces, func(face string) bool {
			return name == face || strings.HasSuffix(face, ".") && strings.HasPrefix(name, face)
		}) {
			left = append(left, name)
		}
	}
	return left
}
