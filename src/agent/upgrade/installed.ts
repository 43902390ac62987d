import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { versionPattern } from '../../core/release.ts'
import { replaceByNew, syncDirectory, writeFileDurably } from '../../disk/durable.ts'
import type { ProcessId } from '../processes/machine.ts'

/** An executable that this agent was upgraded to: `releases/VERSION/rsm` in its data directory. */
export interface Installed {
  readonly version: string
  /** SHA-256 of the file, 64 hex digits: a damaged one is not run. */
  readonly sha256: string
}

/** The time from the swap until the new release is linked. */
export interface Trial {
  readonly taskId: string
  /** Starts of the new release so far. */
  readonly starts: number
  /** Process of its last start. */
  readonly process: ProcessId | null
}

/** Contents of `releases/state.json`. The link `current` beside it wins, because it changes last. */
export interface ReleaseState {
  /** Version of the installed rsm; if that differs, it was installed since and must run. */
  readonly base: string
  /** Null for the installed rsm, like `former`. */
  readonly current: Installed | null
  readonly former: Installed | null
  readonly trial: Trial | null
  /** Failure of the last upgrade that was undone. */
  readonly undone: { readonly taskId: string; readonly reason: string } | null
}

const fileName = 'state.json'
const linkName = 'current'
const executableName = 'rsm'
/** Lock of the upgrade in progress. */
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

/** Null if it is missing or invalid: then the installed rsm runs. */
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

/** Version that `current` leads to; null without the link. */
export function linkedVersion(releases: string): string | null {
  try {
    const [version = '', file] = readlinkSync(join(releases, linkName)).split('/')
    return file === executableName && versionPattern.test(version) ? version : null
  } catch {
    return null
  }
}

/** Points `current` to a version, or removes it, in one step. */
export async function link(releases: string, version: string | null): Promise<void> {
  const path = join(releases, linkName)
  if (version !== null)
    return replaceByNew(path, (temporary) => symlink(join(version, executableName), temporary))
  await rm(path, { force: true })
  await syncDirectory(releases)
}

/** Makes the previous release run from the next start, for `reason`. Does nothing after the trial. */
export async function undo(releases: string, reason: string): Promise<void> {
  const state = readState(releases)
  if (state?.trial == null) return
  const { former, trial } = state
  await link(releases, former?.version ?? null)
  const undone = { taskId: trial.taskId, reason }
  await writeState(releases, { ...state, current: former, former: null, trial: null, undone })
}

/** Ends the trial when the agent of this version is linked: no rollback from here. */
export async function confirm(releases: string, version: string): Promise<void> {
  const state = readState(releases)
  if (state?.trial == null || state.current?.version !== version) return
  if (linkedVersion(releases) === version) await writeState(releases, { ...state, trial: null })
}

/** Removes all but the current and previous release, including leftovers of a killed upgrade. */
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

/** Whether the path exists and only this user can have written it. */
export function isOwn(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found !== undefined && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
}
