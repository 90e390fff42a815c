package forwarder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/failure"
)

type hook struct {
	url    string
	client *http.Client
}

// DeliveryError reports that the receiver did not accept an event.
type DeliveryError struct {
	Status int // 0: there was no answer
	Err    error
}

func (e *DeliveryError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("deliver event: the receiver answered %d", e.Status)
	}
	return fmt.Sprintf("deliver event: %v", e.Err)
}

// Unwrap returns why there was no answer.
func (e *DeliveryError) Unwrap() error { return e.Err }

// Permanent reports whether a retry is useless: the receiver refuses the event.
func (e *DeliveryError) Permanent() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.Status >= 300 && e.Status < 500
}

// isDelivery separates the receiver's failures from others, such as an unreachable inbox or a stop. An event without an
// id goes to the dead topic as well.
func isDelivery(err error) bool {
	_, is := errors.AsType[*DeliveryError](err)
	return is || failure.Classify(err) == failure.Permanent
}

func isWorthwhile(err error) bool {
	failed, is := errors.AsType[*DeliveryError](err)
	return is && !failed.Permanent()
}

// answerLimit bounds the read bytes of an answer, whose connection is used again.
const answerLimit = 64 << 10

// deliver posts the event in CloudEvents' binary mode. Its id is the Idempotency-Key too, so a receiver that knows such
// keys accepts a duplicate only once. A stop does not cut the request off: its event would be posted again.
func (h hook) deliver(msg *message.Message) error {
	ctx := context.WithoutCancel(msg.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(msg.Payload))
	if err != nil {
		return &DeliveryError{Err: err}
	}
	for name, value := range msg.Metadata {
		if attribute, is := strings.CutPrefix(name, "ce_"); is {
			request.Header.Set("ce-"+attribute, encode(value))
		}
	}
	request.Header.Set("Content-Type", cmp.Or(encode(msg.Metadata.Get("content-type")), "application/json"))
	if trace := msg.Metadata.Get("traceparent"); trace != "" {
		request.Header.Set("Traceparent", encode(trace))
	}
	request.Header.Set("Idempotency-Key", encode(eventID(msg)))
	response, err := h.client.Do(request)
	if err != nil {
		return &DeliveryError{Err: err}
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, answerLimit)
	if response.StatusCode >= 300 {
		return &DeliveryError{Status: response.StatusCode}
	}
	return nil
}

// stay follows no redirection: an event goes to its configured address only.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// eventID is also the id that the inbox remembers.
func eventID(msg *message.Message) string { return cmp.Or(msg.Metadata.Get("ce_id"), msg.UUID) }

// encode percent-encodes what is not printable ASCII, as CloudEvents requires.
func encode(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if c < 0x20 || c > 0x7e || c == '%' || c == '"' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
