import { nearest } from '../../core/text/nearest.ts'
import { isLike } from './likeness.ts'

/** Commands by words that other tools have for them. */
const commands: Readonly<Record<string, string>> = {
  attach: 'terminal',
  'auth login': 'login',
  'auth logout': 'logout',
  'auth status': 'whoami',
  connect: 'terminal',
  doctor: 'hosts doctor',
  join: 'hosts join',
  console: 'terminal',
  dashboard: 'tui',
  ls: 'hosts list',
  inventory: 'hosts list',
  jobs: 'tasks list',
  kill: 'tasks cancel',
  list: 'hosts list',
  output: 'logs',
  ping: 'hosts doctor',
  ps: 'tasks list',
  register: 'hosts join',
  retry: 'tasks retry',
  run: 'exec',
  shell: 'terminal',
  signin: 'login',
  ssh: 'terminal',
  status: 'hosts list',
  stop: 'tasks cancel',
  tail: 'logs',
  top: 'tui',
  wait: 'tasks wait',
  watch: 'events',
}

/** The same for what stands before a verb. */
const topics: Readonly<Record<string, string>> = {
  config: 'context',
  group: 'clusters',
  groups: 'clusters',
  job: 'tasks',
  jobs: 'tasks',
  machine: 'hosts',
  machines: 'hosts',
  node: 'hosts',
  nodes: 'hosts',
  runs: 'tasks',
  sessions: 'recordings',
}

const verbs: Readonly<Record<string, string>> = {
  abort: 'cancel',
  cat: 'show',
  change: 'edit',
  create: 'add',
  del: 'remove',
  delete: 'remove',
  describe: 'show',
  exec: 'run',
  execute: 'run',
  follow: 'wait',
  watch: 'wait',
  get: 'show',
  info: 'show',
  kill: 'cancel',
  ls: 'list',
  make: 'add',
  new: 'add',
  replay: 'play',
  rerun: 'retry',
  rm: 'remove',
  set: 'edit',
  stop: 'cancel',
  switch: 'use',
  update: 'edit',
  view: 'show',
}

const own = (table: Readonly<Record<string, string>>, word: string): string | undefined =>
  Object.hasOwn(table, word) ? table[word] : undefined

function near(typed: string, known: readonly string[]): string | undefined {
  const found = nearest(typed, known)
  return found !== undefined && isLike(typed, found) ? found : undefined
}

/** The verb of a topic that was probably meant. */
function verbMeant(known: readonly string[], typed: string): string | undefined {
  if (known.includes(typed)) return typed
  const other = own(verbs, typed)
  return other !== undefined && known.includes(other) ? other : near(typed, known)
}

/**
 * The command that the first words of a line probably mean, `ids` being those that there are (`hosts:list`): by a word that another tool has
 * for it, else by the nearest spelling. Undefined where nothing is near.
 */
export function commandMeant(
  ids: readonly string[],
  [first = '', second]: readonly string[],
): string | undefined {
  const typed = first.toLowerCase()
  const verbsOf = (topic: string) =>
    ids.flatMap((id) => (id.startsWith(`${topic}:`) ? [id.slice(topic.length + 1)] : []))
  const firsts = [...new Set(ids.map((id) => id.split(':')[0] ?? ''))]
  const other = own(commands, `${typed} ${second?.toLowerCase()}`) ?? own(commands, typed)
  const isTopicLike = second !== undefined && own(topics, typed) !== undefined
  if (other !== undefined && !isTopicLike && ids.includes(other.replace(' ', ':'))) return other
  const topic = firsts.includes(typed) ? typed : (own(topics, typed) ?? near(typed, firsts))
  if (topic === undefined || !firsts.includes(topic)) return undefined
  if (ids.includes(topic)) return topic
  const known = verbsOf(topic)
  const verb =
    second === undefined || second.startsWith('-') ? undefined : verbMeant(known, second.toLowerCase())
  // What is no verb of this topic may be a command that needs none.
  const alone = verb === undefined && second !== undefined ? near(second.toLowerCase(), ids) : undefined
  if (alone !== undefined && !alone.includes(':') && topic === first) return alone
  // Of a topic that was typed rightly, it is the verb that is in question.
  if (verb === undefined) return topic === first ? undefined : topic
  return `${topic} ${verb}`
}
