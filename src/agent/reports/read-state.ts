import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { AgentFacts } from '../../core/checks/examine-agent.ts'
import { RsmError } from '../../core/errors.ts'
import type { AgentState } from '../../core/hosts/agent-state.ts'
import { isAlive, readStat } from '../processes/machine.ts'
import { type KeptState, stateFileName } from './status-file.ts'

const unit = 'rsm-agent'
const unitFiles = [`/etc/systemd/system/${unit}.service`, `/usr/lib/systemd/system/${unit}.service`]

const processTitle = 'rsm agent run'
/** File in a data directory that its agent holds open. */
const lockName = '/lock'

/** Limit of other agents listed in a hint. */
const maxNamed = 3

interface RunningState extends AgentState {
  readonly pid: number
  /** Stopped by SIGSTOP or a debugger: its state may be stale. */
  readonly isStopped: boolean
}

interface AgentProcess {
  readonly pid: number
  readonly user: string
  /** Null if this user may not see it. */
  readonly dataDir: string | null
}

/**
 * State of the agent running on this data directory; `dataDirOption` is its shell option, empty for the
 * default. @throws RsmError `not_found` if none runs there, `forbidden` if it belongs to another user.
 */
export function readAgentState(directory: string, dataDirOption = ''): RunningState {
  const none = (message: string, url: string) =>
    new RsmError('not_found', message, {
      hint: `start it: ${startCommand(url, dataDirOption)}${elsewhere()}`,
    })
  let text: string
  try {
    text = readFileSync(join(directory, stateFileName), 'utf8')
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code !== 'EACCES') throw none(`no agent runs on ${directory}`, 'URL')
    const owner = ownerOf(directory)
    throw new RsmError('forbidden', `${directory} belongs to ${owner}`, {
      hint: `ask as that user: sudo ${owner === 'root' ? '' : `-u ${owner} `}rsm agent status --data-dir ${directory}`,
      cause,
    })
  }
  const { startTime, ...state } = JSON.parse(text) as KeptState
  if (!isAlive({ pid: state.pid, startTime }))
    throw none(`the agent on ${directory} is gone: pid ${state.pid} ended without a shutdown`, state.url)
  return { ...state, isStopped: isStopped(state.pid) }
}

/** State of the agent running on this data directory, and its surroundings. Rejects like `readAgentState`. */
export async function readAgentFacts(
  directory: string,
  dataDirOption: string,
): Promise<{ state: RunningState; facts: AgentFacts }> {
  const dataDir = resolve(directory)
  const state = readAgentState(dataDir, dataDirOption)
  const figures = await statfs(dataDir).catch(() => null)
  const freePercent = figures && figures.blocks > 0 ? (figures.bavail / figures.blocks) * 100 : null
  const others = agentsHere().filter(({ pid }) => pid !== state.pid)
  return { state, facts: { ...state, dataDir, freePercent, others } }
}

function isStopped(pid: number): boolean {
  try {
    return /^State:\t[Tt]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

/** Command that starts the agent on this host; its service uses the default directory. */
function startCommand(url: string, dataDirOption: string): string {
  if (dataDirOption !== '') return `rsm agent run --url ${url} ${dataDirOption}`
  return unitFiles.some((path) => existsSync(path)) ? `systemctl start ${unit}` : `rsm agent run --url ${url}`
}

/** Lists running agents, as a hint for a wrong data directory; empty without any. */
function elsewhere(): string {
  const found = agentsHere()
  const named = found.slice(0, maxNamed).map(({ pid, user, dataDir }) => {
    const where = dataDir === null ? '' : `, --data-dir ${dataDir}`
    return `pid ${pid} of ${user}${where}`
  })
  if (found.length > maxNamed) named.push(`${found.length - maxNamed} more`)
  return named.length === 0 ? '' : `\nor ask one that runs here: ${named.join('; ')}`
}

/** Agents of all users on this host, found by their processes. */
function agentsHere(): AgentProcess[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).flatMap((pid) => {
    if (readStat(pid)?.command !== processTitle) return []
    try {
      return [{ pid, user: userName(statSync(`/proc/${pid}`).uid), dataDir: dataDirectoryOf(pid) }]
    } catch {
      return []
    }
  })
}

function dataDirectoryOf(pid: number): string | null {
  try {
    const directory = `/proc/${pid}/fd`
    for (const fd of readdirSync(directory)) {
      const path = readlinkSync(`${directory}/${fd}`)
      if (path.endsWith(lockName)) return dirname(path)
    }
  } catch {
    // Another user's process, or it has ended.
  }
  return null
}

/** Owner of the directory, or of the nearest visible parent. */
function ownerOf(path: string): string {
  try {
    return userName(statSync(path).uid)
  } catch {
    return ownerOf(dirname(path))
  }
}

/** Name of a user of this machine, or its number without an entry in /etc/passwd. */
function userName(uid: number): string {
  try {
    const users = readFileSync('/etc/passwd', 'utf8').split('\n')
    const found = users.map((line) => line.split(':')).find(([, , id]) => id === String(uid))
    return found?.[0] ?? `user ${uid}`
  } catch {
    return `user ${uid}`
  }
}
