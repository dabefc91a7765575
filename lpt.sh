#!/bin/sh
# Jobs of a pool one after another, the longest first.
jq -c 'if .kind != "schedule" or .capacity.kind != "pool" then {skipped: "jobs of a pool only"} else
  [.jobs | to_entries[] | {i: .key, release: .value.release, degree: 0, seconds: .value.durations[0]}]
  | sort_by(-.seconds) as $order
  | reduce $order[] as $job ({clock: 0, start: []};
      ([.clock, $job.release] | max) as $begin | .start[$job.i] = $begin | .clock = $begin + $job.seconds)
  | {kind: "schedule_plan", schema_version: 1, jobs: [], degree: [], start} end'
