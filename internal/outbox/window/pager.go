package window

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
)

// Columns is what every statement of [Pager.Read] selects from public.outbox, as o, in the order in which Pager.scan
// reads it.
const Columns = `o.position, o.event_id, o.event_type, o.source, o.topic, o.key, o.version, o.data_schema,
    o.occurred_at, o.headers, o.payload`

// Record is one row, ready to be sent.
type Record struct {
	Position int64
	ID       [16]byte
	Event    cloudevent.Event // with its topic
}

// Key is what the record's order is kept for.
func (r *Record) Key() Key { return Key{r.Event.Topic, r.Event.Key} }

// Key is a key of a topic.
type Key struct{ Topic, Key string }

// Page is some rows in the order of their positions.
type Page struct {
	Records []Record
	More    bool // there may be rows behind the last one
}

// Last is the position of the last row.
func (p *Page) Last() int64 { return p.Records[len(p.Records)-1].Position }

// Pager reads pages. Its strings and payloads are copied once, a page at a time: the rows of a page share two
// allocations, and the few topics, types, sources and schemas there are share theirs for good. Nothing is reused
// while a publisher may still hold a message.
type Pager struct {
	limit    int // rows wanted; shrinks while rows are large
	maxLimit int
	maxBytes int // of payloads in memory
	interned map[string]string

	rows []row
	text []byte
	data []byte
	size int // of the last page's data: the best guess at the next one's
}

// row is a row before its page is complete: where its text and its data end in the page's.
type row struct {
	Record
	textEnd, dataEnd int
}

const idLength = 36 // of an id's canonical form, with which a row's text begins

// NewPager limits a page in rows, and in bytes of its payloads.
func NewPager(maxLimit, maxBytes int) *Pager {
	return &Pager{limit: maxLimit, maxLimit: maxLimit, maxBytes: maxBytes, interned: map[string]string{}}
}

// binaryResults asks for every column in its binary form.
var binaryResults = pgx.QueryResultFormats{pgx.BinaryFormatCode}

// Read reads a page with a statement that selects [Columns] and has its limit as its last parameter.
func (p *Pager) Read(ctx context.Context, db DB, sql string, args ...any) (Page, error) {
	args = append(append([]any{binaryResults}, args...), p.limit)
	rows, _ := db.Query(ctx, sql, args...) // its error is that of the rows
	defer rows.Close()
	p.rows, p.text, p.data = p.rows[:0], p.text[:0], nil
	seen, truncated := 0, false
	for rows.Next() {
		seen++
		if truncated = truncated || len(p.data) > p.maxBytes; truncated {
			continue // the limit was a guess and too high; the next page starts here
		}
		if err := p.scan(rows.RawValues()); err != nil {
			return Page{}, err
		}
	}
	if err := rows.Err(); err != nil {
		return Page{}, fmt.Errorf("read page: %w", err)
	}
	result := Page{Records: make([]Record, len(p.rows)), More: seen == p.limit || truncated}
	text, textFrom, dataFrom := string(p.text), 0, 0
	for i := range p.rows {
		r := &p.rows[i]
		keyFrom := textFrom + idLength
		r.Event.ID, r.Event.Key = text[textFrom:keyFrom], text[keyFrom:r.textEnd]
		r.Event.Data = p.data[dataFrom:r.dataEnd:r.dataEnd]
		textFrom, dataFrom = r.textEnd, r.dataEnd
		result.Records[i] = r.Record
	}
	p.size = len(p.data)
	switch {
	case truncated:
		p.limit = max(1, len(result.Records))
	case p.size < p.maxBytes/2:
		p.limit = min(2*p.limit, p.maxLimit)
	}
	return result, nil
}

// scan copies a row out of the connection's buffer, which the next row overwrites.
func (p *Pager) scan(v [][]byte) error {
	p.rows = append(p.rows, row{})
	r := &p.rows[len(p.rows)-1]
	r.Position = int64(binary.BigEndian.Uint64(v[0]))
	copy(r.ID[:], v[1])
	for i, part := range [...][]byte{v[1][:4], v[1][4:6], v[1][6:8], v[1][8:10], v[1][10:]} {
		if i > 0 {
			p.text = append(p.text, '-')
		}
		p.text = hex.AppendEncode(p.text, part)
	}
	p.text = append(p.text, v[5]...)
	r.textEnd = len(p.text)
	r.Event.Type, r.Event.Source, r.Event.Topic = p.intern(v[2]), p.intern(v[3]), p.intern(v[4])
	r.Event.Version = int64(binary.BigEndian.Uint64(v[6]))
	r.Event.DataSchema = p.intern(v[7])
	r.Event.Time = time.UnixMicro(int64(binary.BigEndian.Uint64(v[8])) + pgEpoch).UTC()
	if len(v[9]) > 1 { // null for most; the first byte is the format's version
		var err error
		if r.Event.Extensions, err = decodeHeaders(v[9][1:]); err != nil {
			return fmt.Errorf("decode headers at position %d: %w", r.Position, err)
		}
	}
	if p.data == nil {
		p.data = make([]byte, 0, max(p.size, len(v[10])))
	}
	p.data = append(p.data, v[10]...)
	r.dataEnd = len(p.data)
	return nil
}

const maxInterned = 10_000 // a writer may put an id into its types

func (p *Pager) intern(b []byte) string {
	if s, ok := p.interned[string(b)]; ok { // does not allocate
		return s
	}
	s := string(b)
	if len(p.interned) < maxInterned {
		p.interned[s] = s
	}
	return s
}

// pgEpoch is PostgreSQL's zero: a timestamptz counts microseconds from here.
var pgEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// decodeHeaders reads the headers column as the server sends it: a flat object of strings, spaced in one way. Almost no
// value has an escape in it, and then names and values alternate between the quotes; anything else is left to
// encoding/json.
func decodeHeaders(b []byte) (m map[string]string, err error) {
	rest, plain := bytes.CutPrefix(b, []byte(`{"`))
	plain = plain && bytes.IndexByte(b, '\\') < 0
	m = make(map[string]string, 2)
	for plain {
		name, after, named := bytes.Cut(rest, []byte(`": "`))
		value, after, ended := bytes.Cut(after, []byte(`"`))
		if !named || !ended || bytes.IndexByte(name, '"') >= 0 {
			break
		}
		m[string(name)] = string(value)
		if string(after) == "}" {
			return m, nil
		}
		rest, plain = bytes.CutPrefix(after, []byte(`, "`))
	}
	m = nil
	err = json.Unmarshal(b, &m)
	return m, err
}
