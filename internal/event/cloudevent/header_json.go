package cloudevent

import (
	"encoding/json"
	"errors"
	"strings"
)

// headerJSON is a header in an export of dead letters. The bytes of a name are there where it is not
// text, which JSON could not carry.
type headerJSON struct {
	Name      *string `json:"name"`
	NameBytes []byte  `json:"name_base64,omitempty"`
	Value     []byte  `json:"value"`
}

// MarshalJSON implements [json.Marshaler].
func (h Header) MarshalJSON() ([]byte, error) {
	name := strings.ReplaceAll(strings.ToValidUTF8(h.Name, "\uFFFD"), "\x00", "\uFFFD")
	encoded := headerJSON{Name: &name, Value: h.Value}
	if name != h.Name {
		encoded.NameBytes = []byte(h.Name)
	}
	return json.Marshal(encoded)
}

var errNoName = errors.New("header without a name")

// UnmarshalJSON implements [json.Unmarshaler].
func (h *Header) UnmarshalJSON(text []byte) error {
	var encoded headerJSON
	if err := json.Unmarshal(text, &encoded); err != nil {
		return err
	}
	switch {
	case encoded.NameBytes != nil:
		h.Name = string(encoded.NameBytes)
	case encoded.Name != nil:
		h.Name = *encoded.Name
	default:
		return errNoName
	}
	h.Value = encoded.Value
	return nil
}
