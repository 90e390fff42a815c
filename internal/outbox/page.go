package outbox

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
)

// columns is what every reading statement selects from public.outbox, as o, in the order in which page.scan reads it.
const columns = `o.position, o.event_id, o.event_type, o.source, o.topic, o.key, o.version, o.data_schema,
    o.occurred_at, o.headers, o.payload`

// record is one row, ready to be sent.
type record struct {
	position int64
	id       [16]byte
	topic    string
	event    cloudevent.Event
}

func (r *record) name() keyName { return keyName{r.topic, r.event.Key} }

// keyName is what order is kept for.
type keyName struct{ topic, key string }

// page is some rows in the order of their positions.
type page struct {
	records []record
	more    bool // there may be rows behind the last one
}

func (p *page) last() int64 { return p.records[len(p.records)-1].position }

// pager reads pages. Its strings and payloads are copied once, a page at a time: the rows of a page share two
// allocations, and the few topics, types, sources and schemas there are share theirs for good. Nothing is reused
// while a publisher may still hold a message.
type pager struct {
	limit    int // rows wanted; shrinks while rows are large
	maxLimit int
	maxBytes int // of payloads in memory
	interned map[string]string

	rows []row
	text []byte
	data []byte
	size int // of the last page's data: the best guess at the next one's
}

// row is a row before its page is complete: where its text ends in the page's.
type row struct {
	record
	idEnd, keyEnd     int
	dataFrom, dataEnd int
}

func newPager(maxLimit, maxBytes int) *pager {
	return &pager{limit: maxLimit, maxLimit: maxLimit, maxBytes: maxBytes, interned: map[string]string{}}
}

// binaryResults asks for every column in its binary form.
var binaryResults = pgx.QueryResultFormats{pgx.BinaryFormatCode}

// collect reads what a query with a limit of p.limit returns.
func (p *pager) collect(rows pgx.Rows) (page, error) {
	defer rows.Close()
	p.rows, p.text, p.data = p.rows[:0], p.text[:0], nil
	seen, truncated := 0, false
	for rows.Next() {
		seen++
		if truncated = truncated || len(p.data) > p.maxBytes; truncated {
			continue // the limit was a guess and too high; the next page starts here
		}
		if err := p.scan(rows.RawValues()); err != nil {
			return page{}, err
		}
	}
	if err := rows.Err(); err != nil {
		return page{}, fmt.Errorf("read page: %w", err)
	}
	result := page{records: p.build(), more: seen == p.limit || truncated}
	p.size = len(p.data)
	switch {
	case truncated:
		p.limit = max(1, len(result.records))
	case p.size < p.maxBytes/2:
		p.limit = min(2*p.limit, p.maxLimit)
	}
	return result, nil
}

// scan copies a row out of the connection's buffer, which the next row overwrites.
func (p *pager) scan(v [][]byte) error {
	p.rows = append(p.rows, row{})
	r := &p.rows[len(p.rows)-1]
	r.position = int64(binary.BigEndian.Uint64(v[0]))
	copy(r.id[:], v[1])
	p.text = appendUUID(p.text, r.id)
	r.idEnd = len(p.text)
	r.event.Type, r.event.Source, r.topic = p.intern(v[2]), p.intern(v[3]), p.intern(v[4])
	p.text = append(p.text, v[5]...)
	r.keyEnd = len(p.text)
	r.event.Version = int64(binary.BigEndian.Uint64(v[6]))
	r.event.DataSchema = p.intern(v[7])
	r.event.Time = timeOf(v[8])
	if len(v[9]) > 1 { // null for most; the first byte is the format's version
		var err error
		if r.event.Extensions, err = decodeHeaders(v[9][1:]); err != nil {
			return fmt.Errorf("decode headers at position %d: %w", r.position, err)
		}
	}
	if p.data == nil {
		p.data = make([]byte, 0, max(p.size, len(v[10])))
	}
	r.dataFrom = len(p.data)
	p.data = append(p.data, v[10]...)
	r.dataEnd = len(p.data)
	return nil
}

func (p *pager) build() []record {
	text := string(p.text)
	records := make([]record, len(p.rows))
	from := 0
	for i := range p.rows {
		r := &p.rows[i]
		r.event.ID, r.event.Key = text[from:r.idEnd], text[r.idEnd:r.keyEnd]
		from = r.keyEnd
		r.event.Data = p.data[r.dataFrom:r.dataEnd:r.dataEnd]
		records[i] = r.record
	}
	return records
}

const maxInterned = 10_000 // somebody may put an id into a type

func (p *pager) intern(b []byte) string {
	if s, ok := p.interned[string(b)]; ok { // does not allocate
		return s
	}
	s := string(b)
	if len(p.interned) < maxInterned {
		p.interned[s] = s
	}
	return s
}

// appendUUID writes the canonical form.
func appendUUID(dst []byte, id [16]byte) []byte {
	for i, cut := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[[...]int{0, 4, 6, 8, 10}[i]:cut])
	}
	return dst
}

// pgEpoch is PostgreSQL's zero: a timestamptz counts microseconds from here.
var pgEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func timeOf(b []byte) time.Time {
	micros := int64(binary.BigEndian.Uint64(b))
	return time.UnixMicro(micros + pgEpoch.UnixMicro()).UTC()
}
