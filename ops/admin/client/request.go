package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Request is a call of one operation. The operations, and what each takes and gives, are in api/admin.yaml; the types
// of parameters and bodies are those of package adminapi.
type Request struct {
	method, path string
	params, body any
	lines        io.Reader
}

// Get asks for what is at the path. Params is the operation's struct of parameters; nil: it has none.
func Get(path string, params any) Request {
	return Request{method: http.MethodGet, path: path, params: params}
}

// Post does what the path says with the body, which is sent as JSON.
func Post(path string, body any) Request {
	return Request{method: http.MethodPost, path: path, body: body}
}

// PostLines is [Post] for an operation that takes JSON lines, as long as there are any.
func PostLines(path string, params any, lines io.Reader) Request {
	return Request{method: http.MethodPost, path: path, params: params, lines: lines}
}

func (r Request) build(ctx context.Context, base string) (*http.Request, error) {
	target := base + r.path
	if query, err := queryOf(r.params); err != nil {
		return nil, err
	} else if len(query) > 0 {
		target += "?" + query.Encode()
	}
	body, kind := r.lines, "application/jsonl"
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		body, kind = bytes.NewReader(encoded), "application/json"
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err == nil && body != nil {
		request.Header.Set("Content-Type", kind)
	}
	return request, err
}

// queryOf takes the parameters' names and values from their JSON form, which is the one that the document gives them.
func queryOf(params any) (url.Values, error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode parameters: %w", err)
	}
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil {
		return nil, fmt.Errorf("encode parameters: %w", err)
	}
	query := url.Values{}
	for name, value := range members {
		query.Set(name, fmt.Sprint(value))
	}
	return query, nil
}
