import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { versionPattern } from '../../core/release.ts'
import { syncDirectory, temporaryName, writeFileDurably } from '../../disk/durable.ts'
import type { ProcessId } from '../processes/machine.ts'

/** An executable that this agent was upgraded to: `releases/VERSION/rsm` in its data directory. */
export interface Installed {
  readonly version: string
  /** Of the file, 64 hex digits: a damaged one is not run. */
  readonly sha256: string
}

/** The time from the swap until the new one is linked. */
export interface Trial {
  readonly taskId: string
  /** How often the new one was started. */
  readonly starts: number
  /** Of the last start. */
  readonly process: ProcessId | null
}

/** What `releases/state.json` says. The link `current` beside it counts where they differ: it changes last. */
export interface ReleaseState {
  /** The version of the installed rsm; once that is another, whoever put it there wants that one to run. */
  readonly base: string
  /** Null for the installed rsm; so is `former`. */
  readonly current: Installed | null
  readonly former: Installed | null
  readonly trial: Trial | null
  /** How the last upgrade failed that was undone. */
  readonly undone: { readonly taskId: string; readonly reason: string } | null
}

const fileName = 'state.json'
const linkName = 'current'
const executableName = 'rsm'
/** Held by the upgrade that is under way. */
export const lockName = 'lock'

export const releasesIn = (dataDir: string): string => join(dataDir, 'releases')
export const directoryOf = (releases: string, version: string): string => join(releases, version)
export const executableOf = (releases: string, version: string): string =>
  join(releases, version, executableName)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
const isInstalled = (value: unknown): boolean =>
  value === null ||
  (isObject(value) &&
    versionPattern.test(String(value['version'])) &&
    /^[0-9a-f]{64}$/.test(String(value['sha256'])))

/** Null where there is none, or none that can be read: then the installed rsm runs. */
export function readState(releases: string): ReleaseState | null {
  try {
    const found: unknown = JSON.parse(readFileSync(join(releases, fileName), 'utf8'))
    if (!isObject(found) || typeof found['base'] !== 'string') return null
    if (!isInstalled(found['current']) || !isInstalled(found['former'])) return null
    return found as unknown as ReleaseState
  } catch {
    return null
  }
}

export function writeState(releases: string, state: ReleaseState): Promise<void> {
  return writeFileDurably(join(releases, fileName), `${JSON.stringify(state)}\n`)
}

/** Which version `current` leads to; null where there is no such link. */
export function linkedVersion(releases: string): string | null {
  try {
    const [version = '', file] = readlinkSync(join(releases, linkName)).split('/')
    return file === executableName && versionPattern.test(version) ? version : null
  } catch {
    return null
  }
}

/** Lets `current` lead to a version, or to none, in one step. */
export async function link(releases: string, version: string | null): Promise<void> {
  const path = join(releases, linkName)
  if (version === null) await rm(path, { force: true })
  else {
    const draft = temporaryName(path)
    await symlink(join(version, executableName), draft)
    try {
      await rename(draft, path)
    } catch (error) {
      await rm(draft, { force: true })
      throw error
    }
  }
  await syncDirectory(releases)
}

/** Lets the former one run from the next start on; `reason` is why. Does nothing once the new one was linked. */
export async function undo(releases: string, reason: string): Promise<void> {
  const state = readState(releases)
  if (state?.trial == null) return
  const { former, trial } = state
  await link(releases, former?.version ?? null)
  const undone = { taskId: trial.taskId, reason }
  await writeState(releases, { ...state, current: former, former: null, trial: null, undone })
}

/** The agent of this version is linked: there is no way back from here. */
export async function confirm(releases: string, version: string): Promise<void> {
  const state = readState(releases)
  if (state?.trial == null || state.current?.version !== version) return
  if (linkedVersion(releases) === version) await writeState(releases, { ...state, trial: null })
}

/** Removes all but the present and the former release, and what a killed upgrade has left. */
export async function prune(releases: string, beside: readonly string[] = []): Promise<void> {
  const state = readState(releases)
  const linked = linkedVersion(releases)
  const kept = new Set([
    fileName,
    linkName,
    lockName,
    linked,
    state?.current?.version,
    state?.former?.version,
    ...beside,
  ])
  for (const name of readdirSync(releases))
    if (!kept.has(name)) await rm(join(releases, name), { recursive: true, force: true })
}

/** Whether something lies there that only this user may have put there. */
export function isOwn(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found !== undefined && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
}
