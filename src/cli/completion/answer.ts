import { readFileSync, statSync, writeSync } from 'node:fs'
import { shortened } from '../../core/text/pieces.ts'
import { ownPackage, ownText } from '../../disk/own-files.ts'
import { type ChosenServer, Contexts, type ServerChoice } from '../contexts/contexts.ts'
import { type Answer, candidatesFor, plain } from './candidates.ts'
import type { Manifest } from './kinds.ts'
import { type Listed, type Lookup, type Named, NamesCache } from './names-cache.ts'
import { readShellLine, renderBash, renderFish, renderZsh } from './shells.ts'
import { wantedAtCursor } from './wanted.ts'

/** Timeout of the server, in milliseconds; then the answer goes without it. */
const patience = 1_000
const mostAbout = 100

/** Words before the cursor, and the word under it up to the cursor. */
interface Question {
  readonly words: readonly string[]
  readonly current: string
  readonly render: (answer: Answer) => string
}

/**
 * Answers a completion of a shell (`bash`, `zsh`, `fish`) and exits. On any failure, prints nothing and exits 0, so that it
 * never disturbs a user who is typing.
 */
export async function answer(shell: string): Promise<never> {
  process.on('uncaughtException', () => process.exit(0))
  try {
    const question = readQuestion(shell, readFileSync(0, 'utf8').split('\0').slice(0, -1))
    if (question !== undefined) {
      const text = question.render(await answerOf(question))
      for (let bytes = Buffer.from(text); bytes.length > 0; ) bytes = bytes.subarray(writeSync(1, bytes))
    }
  } catch {
    // Fail silently.
  }
  // A pending request would keep the process alive.
  process.exit(0)
}

/** Parses NUL-terminated parts from stdin; not arguments, because every user of the machine can see those. */
function readQuestion(shell: string, parts: readonly string[]): Question | undefined {
  if (shell === 'bash') {
    const [text = '', replaced = '', compType = ''] = parts
    const line = readShellLine(text)
    if (line.isExpanded) return undefined
    const render = (answer: Answer) => renderBash(answer, line.raw, replaced, compType)
    if (line.isRedirection) return { words: ['help', '--'], current: '', render: () => 'files\n' }
    return { words: line.words.slice(1), current: line.current, render }
  }
  const words = parts.slice(0, -1)
  const current = parts.at(-1) ?? ''
  if (shell === 'zsh') return { words, current, render: renderZsh }
  const line = readShellLine(current)
  return line.isExpanded ? undefined : { words: words.slice(1), current: line.current, render: renderFish }
}

async function answerOf({ words, current }: Question): Promise<Answer> {
  const manifest = JSON.parse(ownText('oclif.manifest.json')) as Manifest
  const wanted = wantedAtCursor(manifest, words, current)
  const topic = wanted.is === 'command' ? topics() : () => ''
  return presentable(await candidatesFor(wanted, current, manifest, namesFor(words), topic))
}

function topics(): (id: string) => string {
  const { oclif } = ownPackage()
  return (id) => oclif.topics[id]?.description ?? ''
}

function presentable(answer: Answer): Answer {
  const candidates = answer.candidates.map((each) => ({ ...each, about: shownAbout(each.about) }))
  return { ...answer, candidates }
}

function shownAbout(text: string): string {
  const line = plain.test(text) ? text : text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return shortened(line, mostAbout)
}

function namesFor(words: readonly string[]): Lookup {
  let names: Lookup | undefined
  return async (listed) => {
    names ??= liveNames(readChoice(words))
    return names(listed)
  }
}

const choosing = {
  '--url': 'url',
  '--context': 'context',
  '--token-file': 'tokenFile',
  '--ca-file': 'caFile',
  '--tls-fingerprint': 'tlsFingerprint',
} as const satisfies Record<string, keyof ServerChoice>

const isChoosing = (word: string): word is keyof typeof choosing => Object.hasOwn(choosing, word)

function readChoice(words: readonly string[]): ServerChoice {
  const choice: Partial<Record<keyof ServerChoice, string>> = {}
  for (const [at, word] of words.entries()) {
    if (word === '--') break
    const [, option = word, attached] = /^(--[^=]+)=(.*)$/s.exec(word) ?? []
    const value = attached ?? words[at + 1]
    if (isChoosing(option) && value !== undefined) choice[choosing[option]] = value
  }
  return choice
}

/**
 * Looks up names of the chosen server: fresh ones from the cache, else from the server within `patience` milliseconds, else stale
 * ones from the cache. Never reports a failure.
 */
function liveNames(choice: ServerChoice, env: NodeJS.ProcessEnv = process.env): Lookup {
  const server = chosen(choice, env)
  const token = server?.token
  const cache =
    server !== undefined && token !== undefined ? new NamesCache(server.url, token, env) : undefined
  const pending = new Map<Listed, Promise<readonly Named[]>>()

  async function fetched(listed: Listed): Promise<readonly Named[] | undefined> {
    if (server === undefined) return undefined
    const tooLate = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error('too late')), patience),
    )
    try {
      const { askServer } = await import('./ask-server.ts')
      const found = await Promise.race([askServer(listed, server), tooLate])
      for (const [each, names] of Object.entries(found)) cache?.write(each as Listed, names)
      return found[listed]
    } catch {
      cache?.failed(listed)
      return undefined
    }
  }

  async function lookUp(listed: Listed): Promise<readonly Named[]> {
    if (cache === undefined) return []
    const kept = cache.read(listed)
    if (kept?.isFresh === true) return kept.names
    return (await fetched(listed)) ?? kept?.names ?? []
  }

  return async (listed) => {
    if (listed === 'contexts') return contextNames(env)
    const known = pending.get(listed) ?? lookUp(listed)
    pending.set(listed, known)
    return known
  }
}

function chosen(choice: ServerChoice, env: NodeJS.ProcessEnv): ChosenServer | undefined {
  try {
    const files = [choice.tokenFile, choice.caFile, env['RSM_TOKEN_FILE'], env['RSM_CA_FILE']]
    return files.every(isRegular) ? new Contexts(env).choose(choice, env) : undefined
  } catch {
    return undefined
  }
}

/** Guards against pipes: reading one would block, and consume the command's input. */
function isRegular(path: string | undefined): boolean {
  return path === undefined || path === '' || statSync(path).isFile()
}

function contextNames(env: NodeJS.ProcessEnv): readonly Named[] {
  try {
    const { current, contexts } = new Contexts(env).list()
    return Object.entries(contexts).map(([name, { url }]) => ({
      name,
      about: name === current ? `${url} (current)` : url,
    }))
  } catch {
    return []
  }
}
