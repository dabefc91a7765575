#!/bin/sh
# A solver for GapBench in jq: jobs of a pool one after another, the longest first.
#     gangplan bench run --suite toy --objective schedule --plugin ./longest_first.sh
exec jq -c '
  if .kind != "schedule" or .capacity.kind != "pool" then {skipped: "for jobs of a pool"} else
    [.jobs[].name] as $names | [.jobs | to_entries[] | {place: .key, release: .value.release, seconds: .value.durations[0]}]
    | (reduce (sort_by(-.seconds) | .[]) as $job ({clock: 0, start: []};
        ([.clock, $job.release] | max) as $begin
        | .clock = $begin + $job.seconds | .start[$job.place] = $begin)).start as $start
    | {schema_version: 1, kind: "schedule_plan", jobs: $names, degree: [$names[] | 0], start: $start}
  end'
