package reader

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// Commit is a group's offset in a partition and what was noted beside it. The offset is negative when there is none.
type Commit struct {
	Offset   int64
	Metadata string
}

// Committed asks for the group's offsets.
func (r *Reader) Committed(group, topic string, partitions ...int32) (map[int32]Commit, error) {
	client, err := r.Connected()
	if err != nil {
		return nil, err
	}
	coordinator, end, err := r.turn(func() (*sarama.Broker, error) { return client.Coordinator(group) })
	if err != nil {
		return nil, fmt.Errorf("find coordinator of %s: %w", group, err)
	}
	defer end()
	wanted := map[string][]int32{topic: partitions}
	answer, err := coordinator.FetchOffset(sarama.NewOffsetFetchRequest(client.Config().Version, group, wanted))
	if err != nil {
		_ = coordinator.Close() // it is opened again when it is needed
		return nil, errors.Join(fmt.Errorf("fetch offsets of %s: %w", group, err), client.RefreshCoordinator(group))
	}
	found := make(map[int32]Commit, len(partitions))
	for _, partition := range partitions {
		block := answer.GetBlock(topic, partition)
		switch {
		case answer.Err == sarama.ErrGroupIDNotFound:
			found[partition] = Commit{Offset: -1} // as other brokers say it
			continue
		case answer.Err != sarama.ErrNoError:
			err = answer.Err
		case block == nil:
			err = sarama.ErrIncompleteResponse
		case block.Err != sarama.ErrNoError:
			err = block.Err
		default:
			found[partition] = Commit{block.Offset, block.Metadata}
			continue
		}
		return nil, errors.Join(fmt.Errorf("fetch offsets of %s: %w", group, err), client.RefreshCoordinator(group))
	}
	return found, nil
}

// Offsets asks the leaders for the first offset of each log or for the one behind the last record that is committed.
func (r *Reader) Offsets(
	ctx context.Context, topic string, partitions []int32, which int64,
) (map[int32]int64, error) {
	client, err := r.Connected()
	if err != nil {
		return nil, err
	}
	led := make(map[int32][]int32) // partitions by their leader
	for _, partition := range partitions {
		leader, err := client.Leader(topic, partition)
		if err != nil {
			return nil, fmt.Errorf("find leader of %s/%d: %w", topic, partition, err)
		}
		led[leader.ID()] = append(led[leader.ID()], partition)
	}
	offsets := make(map[int32]int64, len(partitions))
	for id, partitions := range led {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("list offsets of %s: %w", topic, context.Cause(ctx))
		}
		if err := r.offsetsOf(client, id, topic, partitions, which, offsets); err != nil {
			return nil, errors.Join(fmt.Errorf("list offsets of %s: %w", topic, err), client.RefreshMetadata(topic))
		}
	}
	return offsets, nil
}

// offsetsOf asks one leader.
func (r *Reader) offsetsOf(
	client sarama.Client, id int32, topic string, partitions []int32, which int64, offsets map[int32]int64,
) error {
	leader, end, err := r.turn(func() (*sarama.Broker, error) { return client.Leader(topic, partitions[0]) })
	if err != nil {
		return err
	}
	defer end()
	if leader.ID() != id {
		return sarama.ErrNotLeaderForPartition // it has moved since the partitions were sorted
	}
	request := sarama.NewOffsetRequest(client.Config().Version)
	request.IsolationLevel = sarama.ReadCommitted
	for _, partition := range partitions {
		request.AddBlock(topic, partition, which, 1)
	}
	answer, err := leader.GetAvailableOffsets(request)
	if err != nil {
		_ = leader.Close() // it is opened again when it is needed
		return err
	}
	for _, partition := range partitions {
		block := answer.GetBlock(topic, partition)
		switch {
		case block == nil:
			return sarama.ErrIncompleteResponse
		case block.Err != sarama.ErrNoError:
			return block.Err
		}
		offsets[partition] = block.Offset
	}
	return nil
}

// Describe asks a group's coordinator for its state and its members.
func (r *Reader) Describe(group string) (*sarama.GroupDescription, error) {
	client, err := r.Connected()
	if err != nil {
		return nil, err
	}
	coordinator, end, err := r.turn(func() (*sarama.Broker, error) { return client.Coordinator(group) })
	if err != nil {
		return nil, err
	}
	defer end()
	answer, err := coordinator.DescribeGroups(&sarama.DescribeGroupsRequest{Version: 1, Groups: []string{group}})
	if err != nil {
		_ = coordinator.Close() // it is opened again when it is needed
	}
	switch {
	case err == nil && len(answer.Groups) != 1:
		err = sarama.ErrIncompleteResponse
	case err == nil && answer.Groups[0].Err != sarama.ErrNoError:
		err = answer.Groups[0].Err
	}
	if err != nil {
		_ = client.RefreshCoordinator(group) // the next question goes to the right one
		return nil, err
	}
	return answer.Groups[0], nil
}
