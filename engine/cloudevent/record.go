package cloudevent

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"
)

// RecordMetadata is the Watermill metadata entry of a message that is to become one particular record: another
// system's, with a key that need not be text and headers that may stand twice, which metadata cannot say. A publisher
// writes the [Wire] in it and the payload, and nothing else of the message. It is transport state and never a header.
const RecordMetadata = "record_wire"

// Wire is a record without its value, byte for byte.
type Wire struct {
	Key       []byte // nil: null, which is not empty
	Headers   []Header
	NullValue bool // the value is null, which is not empty
}

// wireHeader is a [Header] in the value of [RecordMetadata]. A name that is not text stands in Bytes.
type wireHeader struct {
	Name  string
	Bytes []byte `json:",omitempty"`
	Value []byte
}

type wireJSON struct {
	Key       []byte
	Headers   []wireHeader
	NullValue bool `json:",omitempty"`
}

// Encode is the value of [RecordMetadata].
func (w Wire) Encode() (string, error) {
	coded := wireJSON{Key: w.Key, NullValue: w.NullValue, Headers: make([]wireHeader, len(w.Headers))}
	for i, h := range w.Headers {
		coded.Headers[i] = wireHeader{Name: h.Name, Value: h.Value}
		if !utf8.ValidString(h.Name) {
			coded.Headers[i].Name, coded.Headers[i].Bytes = "", []byte(h.Name)
		}
	}
	encoded, err := json.Marshal(coded)
	return base64.StdEncoding.EncodeToString(encoded), err
}

// ParseWire reads what [Wire.Encode] wrote. It is false for anything else, the empty string included.
func ParseWire(text string) (Wire, bool) {
	if text == "" { // nearly always: costs nothing, not even the Wire below, which has to be on the heap
		return Wire{}, false
	}
	encoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Wire{}, false
	}
	var coded wireJSON
	if json.Unmarshal(encoded, &coded) != nil {
		return Wire{}, false
	}
	w := Wire{Key: coded.Key, NullValue: coded.NullValue, Headers: make([]Header, len(coded.Headers))}
	for i, h := range coded.Headers {
		w.Headers[i] = Header{h.Name, h.Value}
		if h.Bytes != nil {
			w.Headers[i].Name = string(h.Bytes)
		}
	}
	return w, true
}

// RecordMessage is the message that a subscriber makes of a record: of a header that stands twice the last value, the
// id from [HeaderID], the record key under [KeyMetadata]. It never fails; whether it is an event, [FromMessage] says.
func RecordMessage(key []byte, headers []Header, value []byte) *message.Message {
	msg := message.NewMessage("", value)
	for _, h := range headers {
		if h.Name == HeaderID {
			msg.UUID = string(h.Value)
			continue
		}
		msg.Metadata[h.Name] = string(h.Value)
	}
	delete(msg.Metadata, HeaderWatermillID)
	delete(msg.Metadata, KeyMetadata)
	delete(msg.Metadata, RecordMetadata)
	if len(key) > 0 {
		msg.Metadata[KeyMetadata] = string(key)
	}
	return msg
}

// MessageHeaders are the headers of a message that no broker delivered, in the order of their names.
func MessageHeaders(msg *message.Message) []Header {
	headers := make([]Header, 0, len(msg.Metadata)+1)
	if msg.UUID != "" {
		headers = append(headers, Header{HeaderID, []byte(msg.UUID)})
	}
	for _, name := range slices.Sorted(maps.Keys(msg.Metadata)) {
		if name != KeyMetadata && name != RecordMetadata && name != HeaderID {
			headers = append(headers, Header{name, []byte(msg.Metadata[name])})
		}
	}
	return headers
}
