import { nearest } from '../../core/text/nearest.ts'

/** Turns `ours: 'theirs, theirs'` into a map from each of their words to ours. */
function byWord(table: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(table).flatMap(([ours, theirs]) =>
      theirs.split(', ').map((word) => [word, ours] as const),
    ),
  )
}

/** Commands by the words that other tools have for them. */
const commands = byWord({
  events: 'watch',
  exec: 'run',
  'hosts doctor': 'doctor, ping',
  'hosts join': 'join, register',
  'hosts list': 'inventory, list, ls, status',
  login: 'auth login, signin',
  logout: 'auth logout',
  logs: 'output, tail',
  'tasks cancel': 'kill, stop',
  'tasks list': 'jobs, ps',
  'tasks retry': 'retry',
  'tasks wait': 'wait',
  terminal: 'attach, connect, console, shell, ssh',
  tui: 'dashboard, top',
  whoami: 'auth status',
})

const topics = byWord({
  clusters: 'group, groups',
  context: 'config',
  hosts: 'machine, machines, node, nodes',
  recordings: 'sessions',
  tasks: 'job, jobs, runs',
})

const verbs = byWord({
  add: 'create, make, new',
  cancel: 'abort, kill, stop',
  edit: 'change, set, update',
  list: 'ls',
  play: 'replay',
  remove: 'del, delete, rm',
  retry: 'rerun',
  run: 'exec, execute',
  show: 'cat, describe, get, info, view',
  use: 'switch',
  wait: 'follow, watch',
})

const options = byWord({
  '--batch-size': '--serial',
  '--plan': '--check, --list-hosts',
  '--tail': '--lines, -n',
  '-f, --concurrency': '--fanout, --forks',
  '-l, --run-as': '--become, --become-user, --user',
  '-p, --param': '--env, --extra-vars, -e',
})

/** The option of this command that another tool calls so; undefined where it has none. */
export function optionMeant(word: string, known: readonly string[]): string | undefined {
  const meant = options.get(word)
  return meant !== undefined && known.includes(meant.replace(/^.*--/, '')) ? meant : undefined
}

/** Whether a word may be taken for another: in a short one a slip or two make any other word. */
function isLike(typed: string, meant: string): boolean {
  const a = typed.toLowerCase()
  const b = meant.toLowerCase()
  if (a[0] === b[0]) return Math.min(a.length, b.length) > 2 || Math.abs(a.length - b.length) < 2
  // People seldom miss the first letter: if it differs, the rest has to agree, or the first two letters are swapped.
  return a.slice(1) === b.slice(1) || (a[0] === b[1] && a[1] === b[0]) || a === b.slice(1) || b === a.slice(1)
}

/** The known word that was probably meant. No suggestion is better than a wrong one. */
export function near(typed: string, known: readonly string[]): string | undefined {
  const found = nearest(typed, known)
  return found !== undefined && isLike(typed, found) ? found : undefined
}

function verbMeant(known: readonly string[], typed: string): string | undefined {
  if (known.includes(typed)) return typed
  const other = verbs.get(typed)
  return other !== undefined && known.includes(other) ? other : near(typed, known)
}

/**
 * The command that the first words of a line probably mean; `ids` are those that exist (`hosts:list`). A word of another tool
 * comes before the nearest spelling. Undefined where nothing is near.
 */
export function commandMeant(
  ids: readonly string[],
  [first = '', second]: readonly string[],
): string | undefined {
  const typed = first.toLowerCase()
  const firsts = [...new Set(ids.map((id) => id.split(':')[0] ?? ''))]
  const other = commands.get(`${typed} ${second?.toLowerCase()}`) ?? commands.get(typed)
  const isTopicLike = second !== undefined && topics.has(typed)
  if (other !== undefined && !isTopicLike && ids.includes(other.replace(' ', ':'))) return other
  const topic = firsts.includes(typed) ? typed : (topics.get(typed) ?? near(typed, firsts))
  if (topic === undefined || !firsts.includes(topic)) return undefined
  if (ids.includes(topic)) return topic
  const known = ids.flatMap((id) => (id.startsWith(`${topic}:`) ? [id.slice(topic.length + 1)] : []))
  const verb =
    second === undefined || second.startsWith('-') ? undefined : verbMeant(known, second.toLowerCase())
  if (verb !== undefined) return `${topic} ${verb}`
  // What is no verb of this topic may be a command that needs no topic: `tasks logs`.
  const alone = second === undefined ? undefined : near(second.toLowerCase(), ids)
  if (alone !== undefined && !alone.includes(':') && topic === first) return alone
  // If the topic was typed correctly, only the verb is in question.
  return topic === first ? undefined : topic
}
