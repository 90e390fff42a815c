package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Header is one record header, byte for byte. Its name may stand twice and need not be text. A nil value is null, which
// is not empty.
type Header struct {
	Name  string
	Value []byte
}

// EncodeHeaders keeps order, duplicates and bytes: an array of [name, base64 of the value], with the base64 of the name
// behind it where that is not text.
func EncodeHeaders(headers []Header) ([]byte, error) {
	list := make([][]any, len(headers))
	for i, h := range headers {
		name := Text(h.Name)
		list[i] = []any{name, h.Value}
		if name != h.Name {
			list[i] = append(list[i], []byte(h.Name))
		}
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode record headers: %w", err)
	}
	return encoded, nil
}

var errHeader = errors.New("a header is not a name and a value")

func decodeHeaders(encoded []byte) ([]Header, error) {
	var list [][]json.RawMessage
	if err := json.Unmarshal(encoded, &list); err != nil {
		return nil, fmt.Errorf("decode record headers: %w", err)
	}
	headers := make([]Header, len(list))
	for i, parts := range list {
		if err := headers[i].decode(parts); err != nil {
			return nil, fmt.Errorf("decode record headers: %w", err)
		}
	}
	return headers, nil
}

func (h *Header) decode(parts []json.RawMessage) error {
	if len(parts) != 2 && len(parts) != 3 {
		return errHeader
	}
	if err := errors.Join(json.Unmarshal(parts[0], &h.Name), json.Unmarshal(parts[1], &h.Value)); err != nil {
		return err
	}
	if len(parts) == 2 {
		return nil
	}
	var name []byte
	err := json.Unmarshal(parts[2], &name)
	h.Name = string(name)
	return err
}
