// All Workloads that have not finished, of all queues: what the numbers of other views lead to.

import { html, useMemo } from "/lib/preact.js";
import { useAnswer } from "/lib/api.js";
import { Listing } from "/lib/listing.js";
import { Choice, Title } from "/lib/parts.js";
import { words } from "/lib/words.js";

const WAITING = ["position", "name", "namespace", "user", "queue", "asks", "priority", "state", "created"];
const HOLDING = ["name", "namespace", "user", "queue", "asks", "priority", "since", "ends"];

export default function Workloads({ route, go }) {
  const { answer } = useAnswer("/api/workloads", { choices: "1", count: "0", ...(route.query.queue ? { queue: route.query.queue } : {}) });
  const group = route.query.group ?? "";
  const fixed = useMemo(() => (group ? { group } : {}), [group]);
  const columns = route.query.evicted ? [...WAITING.slice(0, -1), "evicted"] : group === "holding" ? HOLDING : WAITING;
  const options = ["", "waiting", "holding"].map((each) => [each, words.list.groups[each || "all"]]);
  return html`<${Title}>${words.workloads.title}<//>
    <div class="tools"><${Choice} label=${words.list.group} value=${group} options=${options} onChange=${(each) => go({ query: { group: each, sort: "", row: "" } })} /></div>
    <${Listing} key=${group} route=${route} go=${go} fixed=${fixed} order=${group === "holding" ? "ends" : "position"} low=${group === "holding"} columns=${columns} choices=${answer?.choices} label=${words.workloads.title}
      empty=${words.workloads.empty} others=${answer?.others ? words.workloads.others : ""} />`;
}
