// What the cluster map shows, from the server's answer: nodes as objects, filters, groups and sums.

import { coloursOf } from "/lib/colours.js";
import { inBytes, number, quantity } from "/lib/format.js";
import { words } from "/lib/words.js";
import { CORDONED, NOT_READY } from "/views/cluster_map_cells.js";

const COLOURS = 10;
const ANY_NODE = "any_node";

// An amount of a resource with its unit.
export function amount(resource, value) {
  return inBytes(resource) ? quantity(resource, value) : words.cluster.unit(resource, number(value), value === 1);
}

export const nodesOf = (count) => words.cluster.nodes(count, number(count));
export const podsOf = (count) => words.cluster.pods(count, number(count));
export const resourceTitle = (resource) => words.cluster.resources[resource] ?? words.cluster.resourceOf(resource);

export function flavorTitle(name) {
  if (!name) return words.cluster.noFlavor;
  return name === ANY_NODE ? words.cluster.anyFlavor : words.cluster.flavor(name);
}

export function stateWords(state) {
  const said = words.cluster.state;
  if (state === (NOT_READY | CORDONED)) return said.both;
  return state & NOT_READY ? said.notReady : state & CORDONED ? said.cordoned : said.ready;
}

// Nodes of an answer, and the queues that use them, most first.
export function modelOf(answer) {
  const { nodes: columns, queues, flavors, places } = answer;
  const uses = new Map();
  const nodes = columns.key.map((key, index) => {
    const parts = [];
    const flat = columns.parts[index];
    let used = 0;
    for (let at = 0; at < flat.length; at += 3) {
      const queue = queues[flat[at]];
      parts.push({ queue, amount: flat[at + 1], pods: flat[at + 2] });
      used += flat[at + 1];
      uses.set(queue, (uses.get(queue) ?? 0) + flat[at + 1]);
    }
    return {
      key, name: answer.named ? key : words.cluster.hidden(key), flavor: flavors[columns.flavor[index]],
      place: places[columns.place[index]], total: columns.total[index], pods: columns.pods[index], parts, used,
      free: Math.max(0, columns.total[index] - used), state: columns.state[index], trouble: columns.trouble[index],
    };
  });
  const order = [...uses.keys()].sort((one, other) => uses.get(other) - uses.get(one) || (one < other ? -1 : 1));
  const titles = new Map(queues.map((name, index) => [name, answer.titles[index]]));
  return { nodes, queues: order, uses, titleOf: (name) => titles.get(name) || words.cluster.other };
}

// Colours of the queues that use most, and of a chosen one; null for the rest.
export function colouring(model, chosen) {
  const named = model.queues.filter((name) => name);
  const first = named.slice(0, COLOURS);
  if (chosen && named.includes(chosen) && !first.includes(chosen)) first[first.length - 1] = chosen;
  const colours = coloursOf(first);
  return { first, colour: (queue) => colours.get(queue) ?? null };
}

const STATES = {
  trouble: (node) => node.state !== 0,
  notReady: (node) => (node.state & NOT_READY) !== 0,
  cordoned: (node) => (node.state & CORDONED) !== 0,
  free: (node) => node.state === 0 && node.free > 0,
  full: (node) => node.state === 0 && node.total > 0 && node.free === 0,
  idle: (node) => node.pods === 0,
};
export const stateNames = (own) => Object.keys(STATES).filter((name) => !own || !["free", "full", "idle"].includes(name));

export function filtered(nodes, { flavor, queue, state }) {
  const fits = STATES[state] ?? (() => true);
  return nodes.filter((node) => fits(node)
    && (flavor === undefined || node.flavor === flavor)
    && (queue === undefined || node.parts.some((part) => part.queue === queue)));
}

// The level by which nodes are grouped: as asked, else the widest that there is.
export function levelOf(levels, by) {
  if (by === "none") return -1;
  const found = levels.findIndex((level) => level.name === by);
  return found < 0 && levels.length ? 0 : found;
}

function placeTitle(place, levels) {
  const said = place.filter((each) => each);
  if (said.length === 0) return words.cluster.nowhere;
  return said.length > 1 ? said.join(" / ") : `${words.cluster.levels[levels[0].name]} ${said[0]}`;
}

// Nodes by flavor, and in blocks by place down to a level.
export function sections(nodes, level, levels) {
  const found = new Map();
  for (const node of nodes) {
    if (!found.has(node.flavor)) found.set(node.flavor, new Map());
    const blocks = found.get(node.flavor);
    const place = level < 0 ? "" : placeTitle(node.place.slice(0, level + 1), levels);
    if (!blocks.has(place)) blocks.set(place, []);
    blocks.get(place).push(node);
  }
  return [...found].map(([flavor, blocks]) => ({
    flavor, blocks: [...blocks].map(([title, members]) => ({ title, nodes: members })), nodes: [...blocks.values()].flat(),
  }));
}

export function sums(nodes) {
  const made = { total: 0, used: 0, free: 0, largest: 0, notReady: 0, cordoned: 0 };
  for (const node of nodes) {
    made.total += node.total;
    made.used += Math.min(node.used, node.total);
    made.notReady += node.state & NOT_READY ? 1 : 0;
    made.cordoned += node.state & CORDONED ? 1 : 0;
    if (node.state === 0) {
      made.free += node.free;
      made.largest = Math.max(made.largest, node.free);
    }
  }
  return made;
}

export function ordered(nodes, order) {
  if (order === "free") return [...nodes].sort((one, other) => (other.state === 0) - (one.state === 0) || other.free - one.free);
  return order === "used" ? [...nodes].sort((one, other) => other.used - one.used) : nodes;
}

// An amount without its unit, where the unit follows or stands above.
export const bare = (resource, value) => (inBytes(resource) ? amount(resource, value) : number(value));
