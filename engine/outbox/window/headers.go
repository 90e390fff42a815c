package window

import (
	"bytes"
	"encoding/json"
)

// decodeHeaders reads the headers column as the server sends it: a flat object of strings, spaced in one way. Almost no
// value has an escape in it, and then names and values alternate between the quotes; anything else is left to
// encoding/json.
func decodeHeaders(b []byte) (map[string]string, error) {
	if m := decodePlainHeaders(b); m != nil {
		return m, nil
	}
	var m map[string]string
	err := json.Unmarshal(b, &m)
	return m, err
}

func decodePlainHeaders(b []byte) map[string]string {
	rest, ok := bytes.CutPrefix(b, []byte(`{"`))
	if !ok || bytes.IndexByte(b, '\\') >= 0 {
		return nil
	}
	m := make(map[string]string, 2)
	for {
		name, after, ok := bytes.Cut(rest, []byte(`": "`))
		if !ok || bytes.IndexByte(name, '"') >= 0 {
			return nil
		}
		value, after, ok := bytes.Cut(after, []byte(`"`))
		if !ok {
			return nil
		}
		m[string(name)] = string(value)
		if string(after) == "}" {
			return m
		}
		if rest, ok = bytes.CutPrefix(after, []byte(`, "`)); !ok {
			return nil
		}
	}
}
