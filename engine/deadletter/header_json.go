package deadletter

import (
	"encoding/json"
	"errors"
)

// headerJSON is a header in an export. The bytes of a name are there where it is not text, which JSON could not carry.
type headerJSON struct {
	Name      *string `json:"name"`
	NameBytes []byte  `json:"name_base64,omitempty"`
	Value     []byte  `json:"value"`
}

// MarshalJSON implements [json.Marshaler].
func (h Header) MarshalJSON() ([]byte, error) {
	name := Text(h.Name)
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
