package contract

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/domain"
)

// Encode returns the definition of a business event and its payload. It fails for a value that is no event, and for
// one whose strings are not UTF-8. It does not check the schema: the outbox does, with [Contract.Validate].
func Encode(event any) (Definition, []byte, error) {
	definition, known := definitionOf(event)
	if !known {
		return Definition{}, nil, fmt.Errorf("encode event: %T is not an event", event)
	}
	data, err := json.Marshal(event)
	if err != nil {
		return Definition{}, nil, fmt.Errorf("encode event %s: %w", definition.Type, err)
	}
	return definition, data, nil
}

func definitionOf(event any) (Definition, bool) {
	switch event.(type) {
	case domain.UserRegistered:
		return UserRegistered, true
	case domain.UserRenamed:
		return UserRenamed, true
	case domain.EmailVerified:
		return EmailVerified, true
	case domain.VerificationEmailSent:
		return VerificationEmailSent, true
	}
	return Definition{}, false
}

// decoders read payloads, by ce_type.
var decoders = map[string]func(cloudevent.Event) (domain.Event, error){
	UserRegistered.Type:        decode[domain.UserRegistered],
	UserRenamed.Type:           decode[domain.UserRenamed],
	EmailVerified.Type:         decode[domain.EmailVerified],
	VerificationEmailSent.Type: decode[domain.VerificationEmailSent],
}

func decode[T domain.Event](e cloudevent.Event) (domain.Event, error) { return Decode[T](e) }

// Decode reads a payload into the struct of its event: unknown members are ignored, member names match exactly. Call
// it after [Contract.Validate], without which missing members are zero values. The error is always an [*Error].
func Decode[T any](e cloudevent.Event) (T, error) {
	var event T
	if err := json.Unmarshal(e.Data, &event); err != nil {
		var none T
		return none, &Error{CodeInvalidJSON, fmt.Sprintf("the payload does not decode into %T", none)}
	}
	return event, nil
}
