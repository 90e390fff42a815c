package cloudevent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"
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

// Attributes are the headers that every event of this project has, in the order in which they are written.
var Attributes = []string{
	HeaderSource, HeaderType, HeaderSpecVersion, HeaderTime, HeaderSubject, HeaderVersion, HeaderDataSchema,
	HeaderContentType, HeaderTraceParent, HeaderTraceState, HeaderCorrelationID, HeaderCausationID,
}

// Causes are those of them that an event has among its extensions.
var Causes = Attributes[len(Attributes)-4:]

// IsExtra reports whether a name of metadata is a header that is written behind the [Attributes].
func IsExtra(name string) bool {
	return !IsAttribute(name) && !slices.Contains(Causes, name)
}

// EachHeader calls write for every header of the message's record, always in the same order.
func EachHeader(msg *message.Message, write func(name, value string)) {
	if msg.UUID != "" {
		write(HeaderID, msg.UUID)
		write(HeaderWatermillID, msg.UUID)
	}
	for _, name := range Attributes {
		if value, ok := msg.Metadata[name]; ok {
			write(name, value)
		}
	}
	var extras []string
	for name := range msg.Metadata {
		if IsExtra(name) {
			extras = append(extras, name)
		}
	}
	slices.Sort(extras)
	for _, name := range extras {
		write(name, msg.Metadata[name])
	}
}

// MessageHeaders are the headers of the record that a message that no broker delivered would have.
func MessageHeaders(msg *message.Message) []Header {
	headers := make([]Header, 0, len(msg.Metadata)+2)
	EachHeader(msg, func(name, value string) { headers = append(headers, Header{name, []byte(value)}) })
	return headers
}

// FillMessage makes of msg what a subscriber makes of a record: of a header that stands twice the last value, the id
// from [HeaderID], the record key under [KeyMetadata]. It never fails; whether it is an event, [FromMessage] says. The
// values of all headers share one string: one allocation instead of one per header.
func FillMessage(msg *message.Message, key []byte, headers []Header, value []byte) {
	msg.Payload = value
	msg.Metadata = make(message.Metadata, len(headers)+1)
	size := 0
	for _, h := range headers {
		size += len(h.Value)
	}
	var all strings.Builder
	all.Grow(size)
	for _, h := range headers {
		all.Write(h.Value)
	}
	text := all.String()
	for _, h := range headers {
		if h.Name == HeaderID {
			msg.UUID = text[:len(h.Value)]
		} else {
			msg.Metadata[h.Name] = text[:len(h.Value)]
		}
		text = text[len(h.Value):]
	}
	delete(msg.Metadata, HeaderWatermillID)
	delete(msg.Metadata, KeyMetadata)
	if len(key) > 0 {
		msg.Metadata[KeyMetadata] = string(key)
	}
}

// RecordMessage is the message that a subscriber makes of a record; see [FillMessage].
func RecordMessage(key []byte, headers []Header, value []byte) *message.Message {
	msg := message.NewMessage("", nil)
	FillMessage(msg, key, headers, value)
	return msg
}
