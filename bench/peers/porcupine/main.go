// Judges histories with Porcupine, used as a library, for bench/checkers.py.
//
// Reads one JSON object: a model, limits, and histories as lists of operations. Prints one JSON object per history: the answer and the
// CPU seconds that CheckOperationsTimeout took; at the end one with the most memory that this process ever had. An operation with an unknown outcome returns after everything else, and its output is not looked at.
//
// Porcupine's own timeout counts seconds on the clock, of which a busy machine gives it few. So it is not used: a history that has used up its CPU
// seconds, or the process its memory, is Unknown, and as a check cannot be stopped from outside the process ends there; whoever started it goes on with the next history.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Process  int    `json:"process"`
	Function string `json:"function"`
	Key      string `json:"key"`
	Argument []int  `json:"argument"`
	Text     string `json:"text"`
	Result   int    `json:"result"`
	Answer   string `json:"answer"`
	Records  []int  `json:"records"`
	Invoke   int64  `json:"invoke"`
	Complete int64  `json:"complete"`
	Unknown  bool   `json:"unknown"`
}

type request struct {
	Model     string        `json:"model"`
	Seconds   float64       `json:"seconds"`
	Mebibytes float64       `json:"mebibytes"`
	Histories [][]operation `json:"histories"`
}

const never = math.MaxInt64

// A register: read, write, and compare-and-set whose result is 1 (done) or 0 (something else was there).
var casRegister = porcupine.Model{
	Init: func() interface{} { return 0 },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		value, op := state.(int), input.(operation)
		switch op.Function {
		case "read":
			return op.Unknown || op.Result == value, value
		case "write":
			return true, op.Argument[0]
		}
		if value == op.Argument[0] {
			return op.Unknown || op.Result == 1, op.Argument[1]
		}
		return op.Unknown || op.Result == 0, value
	},
}

// Independent texts under keys: get, put, append.
var keyValue = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[string][]porcupine.Operation{}
		for _, one := range history {
			key := one.Input.(operation).Key
			parts[key] = append(parts[key], one)
		}
		result := make([][]porcupine.Operation, 0, len(parts))
		for _, part := range parts {
			result = append(result, part)
		}
		return result
	},
	Init: func() interface{} { return "" },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		value, op := state.(string), input.(operation)
		switch op.Function {
		case "get":
			return op.Unknown || op.Answer == value, value
		case "put":
			return true, op.Text
		}
		return true, value + op.Text
	},
}

// A log as a persistent list: its length, the last value, and what came before. An append of one batch answers its offset; a read answers
// the end (result, -1: it claims none) and the records from an offset (argument) on.
type entry struct {
	length int
	value  int
	before *entry
}

var log = porcupine.Model{
	Init: func() interface{} { return (*entry)(nil) },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		last, op := state.(*entry), input.(operation)
		length := 0
		if last != nil {
			length = last.length
		}
		if op.Function == "append" {
			if !op.Unknown && op.Result != length {
				return false, state
			}
			for _, value := range op.Argument {
				last = &entry{length + 1, value, last}
				length++
			}
			return true, last
		}
		if op.Unknown {
			return true, state
		}
		if op.Result >= 0 && op.Result != length || op.Argument[0]+len(op.Records) > length {
			return false, state
		}
		for last != nil && last.length > op.Argument[0]+len(op.Records) {
			last = last.before
		}
		for i := len(op.Records) - 1; i >= 0; i-- {
			if last.value != op.Records[i] {
				return false, state
			}
			last = last.before
		}
		return true, state
	},
	Equal: func(one, other interface{}) bool {
		a, b := one.(*entry), other.(*entry)
		for a != b {
			if a == nil || b == nil || a.length != b.length || a.value != b.value {
				return false
			}
			a, b = a.before, b.before
		}
		return true
	},
}

// The CPU time of this process, garbage collection included.
func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

// The most memory that this process ever had, as Linux counts it for this program alone; 0 where nothing tells.
func peakMebibytes() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kibibytes float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kibibytes); n == 1 {
			return kibibytes / 1024
		}
	}
	return 0
}

func main() {
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	models := map[string]porcupine.Model{"cas-register": casRegister, "register": casRegister, "key-value": keyValue, "log": log}
	model, known := models[asked.Model]
	if !known {
		fmt.Fprintln(os.Stderr, "no model", asked.Model)
		os.Exit(2)
	}
	for _, history := range asked.Histories {
		operations := make([]porcupine.Operation, len(history))
		for i, op := range history {
			end := op.Complete
			if op.Unknown {
				end = never
			}
			operations[i] = porcupine.Operation{ClientId: op.Process, Input: op, Call: op.Invoke, Output: op, Return: end}
		}
		start := cpuSeconds()
		answered := make(chan porcupine.CheckResult, 1)
		go func() { answered <- porcupine.CheckOperationsTimeout(model, operations, 0) }()
		answer := porcupine.CheckResult(porcupine.Unknown)
		for waiting := true; waiting; {
			select {
			case answer = <-answered:
				waiting = false
			case <-time.After(20 * time.Millisecond):
				waiting = cpuSeconds()-start < asked.Seconds && peakMebibytes() < asked.Mebibytes
			}
		}
		fmt.Printf("{\"answer\":%q,\"seconds\":%.6f}\n", answer, cpuSeconds()-start)
		if answer == porcupine.Unknown {
			break
		}
	}
	fmt.Printf("{\"mebibytes\":%.1f}\n", peakMebibytes())
}
