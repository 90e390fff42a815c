package kafka

import (
	"context"
	"errors"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
)

// errNacked is the result of a batch in which a message was nacked; the router has logged why.
var errNacked = errors.New("nacked")

// feeder is the Subscriber's way to deliver a batch: one message after another into a channel, as far as the window
// goes without an acknowledgement.
type feeder struct {
	group  string
	output chan<- *message.Message
}

// feed is one batch on its way.
type feed struct {
	feeder
	p       *partition
	batch   []entry
	out     []outMessage // handed out so far
	next    outMessage   // decoded and not handed out
	settled int          // acknowledged from the beginning on
	stopped bool         // nothing more goes out
	ended   bool         // sarama hands over nothing more
}

type outMessage struct {
	*message.Message
	cancel context.CancelFunc
}

// deliver returns when all messages are acknowledged; when one was nacked and those that are out beside it are settled,
// since a redelivery must not overtake them; or when the partition is being let go and what is out is settled.
func (f feeder) deliver(p *partition, batch []entry) (handled int, err error) {
	d := feed{feeder: f, p: p, batch: batch, out: make([]outMessage, 0, len(batch))}
	defer d.cancelAll()
	for d.settle(); d.settled < len(d.batch); d.settle() {
		if d.settled == len(d.out) && d.stopped {
			return d.settled, nil
		}
		if d.nacked() && d.allSettled() {
			return d.settled, errNacked
		}
		if err := d.step(); err != nil {
			p.busy.Store(!d.allSettled())
			return d.settled, err
		}
	}
	return d.settled, nil
}

// step waits for the next thing that happens.
func (d *feed) step() error {
	var output chan<- *message.Message
	if len(d.out) < len(d.batch) && !d.stopped && !d.nacked() {
		output = d.output
		if d.next.Message == nil {
			d.next = d.message(d.batch[len(d.out)])
		}
	}
	leaving := d.p.leaving
	if d.stopped {
		leaving = nil
	}
	acked, nacked := d.unsettled()
	if output == nil && acked == nil {
		return nil // the last ones were settled since deliver looked
	}
	select {
	case m, ok := <-d.arrivals():
		d.grow(m, ok)
	case output <- d.next.Message:
		d.out = append(d.out, d.next)
		d.next = outMessage{}
	case <-acked:
	case <-nacked:
	case <-leaving:
		d.stopped = true
	case <-d.p.ctx.Done():
		return context.Cause(d.p.ctx)
	}
	return nil
}

// arrivals is where further records of the window come from. The batch holds what was there when it was taken, and
// sarama hands over record by record: a window that did not grow would depend on who was faster.
func (d *feed) arrivals() <-chan *sarama.ConsumerMessage {
	if d.ended || d.stopped || d.p.damaged || d.nacked() || len(d.batch) >= d.p.member.cfg.batch {
		return nil
	}
	return d.p.claim.Messages()
}

func (d *feed) grow(m *sarama.ConsumerMessage, ok bool) {
	if !ok {
		d.ended = true
		return
	}
	d.p.add(m)
	d.batch = d.p.batch()
}

// message decodes the record, anew for each delivery: a handler may have changed the last one.
func (d *feed) message(r entry) outMessage {
	ctx, cancel := context.WithCancel(d.p.ctx)
	return outMessage{decode(ctx, d.group, r), cancel}
}

// settle counts the acknowledged beginning.
func (d *feed) settle() {
	for d.settled < len(d.out) && isClosed(d.out[d.settled].Acked()) {
		d.out[d.settled].cancel()
		d.settled++
	}
}

func (d *feed) nacked() bool {
	for _, m := range d.out[d.settled:] {
		if isClosed(m.Nacked()) {
			return true
		}
	}
	return false
}

func (d *feed) allSettled() bool {
	acked, _ := d.unsettled()
	return acked == nil
}

// unsettled returns the signals of the first message that is out and not settled; nil ones when there is none.
func (d *feed) unsettled() (acked, nacked <-chan struct{}) {
	for _, m := range d.out[d.settled:] {
		if !isClosed(m.Acked()) && !isClosed(m.Nacked()) {
			return m.Acked(), m.Nacked()
		}
		m.cancel()
	}
	return nil, nil
}

func (d *feed) cancelAll() {
	if d.next.Message != nil {
		d.next.cancel()
	}
	for _, m := range d.out {
		m.cancel()
	}
}

func isClosed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}
