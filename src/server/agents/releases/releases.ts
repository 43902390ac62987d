import { mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import type { Release } from '../../../core/protocol/control.ts'
import {
  type Architecture,
  architectures,
  type Build,
  buildName,
  buildOf,
  type ReleaseSignature,
  readReleaseSignature,
} from '../../../core/release.ts'
import { sha256OfFile } from '../../../disk/digest.ts'
import { replaceDurably, temporarySuffix, writeFileDurably } from '../../../disk/durable.ts'
import type { Log } from '../../../disk/log.ts'
import { ownExecutable } from '../../../disk/own-files.ts'
import { isReleaseSigned, ownReleaseKey } from '../../../disk/own-release.ts'

export interface HandedFile {
  readonly path: string
  readonly sha256: string
  readonly size: number
}

export interface SignedBuild extends Build {
  readonly release: ReleaseSignature
}

/** Executables that this server serves: its own, and added ones (contract §10). */
export interface Releases {
  /** At most one per architecture; an added one takes precedence over the server's own. */
  builds(): Promise<Build[]>
  list(): Promise<Release[]>
  /** By its name under `/dl`. Errors: `not_found`, listing the available files. */
  find(file: string): Promise<HandedFile>
  /** The text of `/dl/SHA256SUMS`. */
  sums(): Promise<string>
  /** Builds with a release signature, to which agents may be upgraded. */
  signed(): Promise<SignedBuild[]>
  /** Moves a file from the releases directory into place, with the text of its `.sig`. Errors: `invalid`. */
  add(incoming: string, name: string, signature?: string): Promise<Release>
  /** Errors: `not_found`. */
  remove(name: string): Promise<Release>
}

const sumsFile = 'SHA256SUMS'
const elfMachines: Readonly<Record<Architecture, number>> = { x64: 62, arm64: 183 }

async function firstBytes(path: string): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(20), 0, 20, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** @throws RsmError `invalid` for a file that is not an executable for this architecture. */
function checkKind(head: Buffer, name: string, arch: Architecture, isXz: boolean): void {
  const refuse = (why: string) => {
    throw new RsmError('invalid', `${name} ${why}`, {
      hint: 'add the file as the release has it: rsm-linux-x64 or rsm-linux-arm64, and its .xz after it',
    })
  }
  if (isXz) {
    if (!head.subarray(0, 6).equals(Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0])))
      refuse('is not an .xz file')
    return
  }
  if (head.subarray(0, 2).toString('latin1') === '#!') return
  if (head.subarray(0, 4).toString('latin1') !== '\u007fELF') refuse('is not a program')
  const machine = head.length < 20 ? -1 : head.readUInt16LE(18)
  if (machine !== elfMachines[arch]) refuse(`is not a program for ${arch}`)
}

/** A served file. Its sum is computed on first use: 120 MB take 0.3 s. */
interface ReleaseFile {
  readonly name: string
  readonly path: string
  readonly size: number
  /** Null for the server's own. */
  readonly addedAt: string | null
  readonly sha256: () => Promise<string>
  /** Null also for the signature of another executable, which a crash may leave. */
  readonly release: () => Promise<ReleaseSignature | null>
}

async function readFileFacts(path: string, name: string, own: boolean): Promise<ReleaseFile> {
  const { size, mtime } = await stat(path)
  let sum: Promise<string> | undefined
  const sha256 = () => {
    sum ??= sha256OfFile(path)
    return sum
  }
  const release = async () => {
    if (own) return null
    const found = readReleaseSignature(await readFile(signatureOf(path), 'utf8').catch(() => ''))
    return found?.sha256 === (await sha256()) ? found : null
  }
  return { name, path, size, addedAt: own ? null : mtime.toISOString(), sha256, release }
}

async function toApi({ name, size, addedAt, sha256, release }: ReleaseFile): Promise<Release> {
  const found = await release()
  return {
    name,
    size,
    sha256: await sha256(),
    addedAt,
    version: found?.version ?? null,
    signature: found === null ? null : ownReleaseKey() === null ? 'UNCHECKED' : 'VALID',
  }
}

const signatureOf = (path: string) => `${path}.sig`

/** @throws RsmError `invalid` if malformed, for another executable, or by another key than this build's. */
function checkSignature(text: string, name: string, { arch, sha256 }: Pick<Build, 'arch' | 'sha256'>): void {
  const refuse = (why: string, hint: string) => {
    throw new RsmError('invalid', `${name}.sig ${why}`, { hint })
  }
  const release = readReleaseSignature(text)
  const again = 'take both files from the same release'
  if (release === null) return refuse('is not the signature of a release', again)
  if (release.arch !== arch || release.sha256 !== sha256)
    return refuse(`belongs to another executable, rsm ${release.version} for ${release.arch}`, again)
  const key = ownReleaseKey()
  if (key !== null && !isReleaseSigned(key, release))
    refuse("is not by the release key of this server's build", 'agents of this build would refuse it too')
}

/** The server's own executable, and those in `releases/` of the data directory. */
export async function openReleases(
  dataDir: string,
  log: Log,
  own: string | undefined = ownExecutable(),
): Promise<Releases> {
  const directory = join(dataDir, 'releases')
  const arch = architectures.find((each) => each === process.arch)
  const mine =
    own === undefined || arch === undefined ? null : await readFileFacts(own, buildName(arch), true)
  const added = new Map<string, ReleaseFile>()

  async function read(): Promise<void> {
    // Create it now, so that the server owns it before root copies the first file into it.
    await mkdir(directory, { recursive: true, mode: 0o700 })
    for (const name of await readdir(directory)) {
      const path = join(directory, name)
      // Left by an interrupted `add`.
      if (name.startsWith('.') || name.endsWith(temporarySuffix)) await rm(path, { force: true })
      else if (buildOf(name)) added.set(name, await readFileFacts(path, name, false))
    }
  }

  function all(): ReleaseFile[] {
    const files = [...added.values()]
    if (mine !== null && !added.has(mine.name)) files.push(mine)
    return files.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async function drop(name: string): Promise<void> {
    if (!added.delete(name)) return
    await rm(join(directory, name), { force: true })
    await rm(signatureOf(join(directory, name)), { force: true })
  }

  await read().catch((error: unknown) => {
    log.error({ err: error, directory }, 'cannot read added releases: they are not available')
  })
  return {
    async builds() {
      const builds: Build[] = []
      for (const { name, size, sha256 } of all()) {
        const build = buildOf(name)
        if (build?.isXz === false) builds.push({ name, arch: build.arch, size, sha256: await sha256() })
      }
      return builds
    },
    async signed() {
      const builds: SignedBuild[] = []
      for (const { name, size, sha256, release } of all()) {
        const found = await release()
        if (found !== null)
          builds.push({ name, arch: found.arch, size, sha256: await sha256(), release: found })
      }
      return builds
    },
    list: () => Promise.all(all().map(toApi)),
    async find(file) {
      const found = all().find(({ name }) => name === file)
      if (found) return { path: found.path, size: found.size, sha256: await found.sha256() }
      const names = all().map(({ name }) => name)
      throw new RsmError(
        'not_found',
        names.length === 0
          ? 'This server has no builds to hand out; add one on its machine: rsm server releases add FILE'
          : `no such file: ${file}; available: ${[...names, sumsFile].join(', ')}`,
      )
    },
    async sums() {
      const lines = await Promise.all(all().map(async ({ name, sha256 }) => `${await sha256()}  ${name}\n`))
      return lines.join('')
    },
    async add(incoming, name, signature) {
      const build = buildOf(name)
      if (build === null)
        throw new RsmError('invalid', `${name} is not the name of a build`, {
          hint: 'name it rsm-linux-x64 or rsm-linux-arm64, with .xz where it is compressed',
        })
      const path = join(directory, basename(incoming))
      checkKind(await firstBytes(path), name, build.arch, build.isXz)
      const plain = buildName(build.arch)
      if (build.isXz && !all().some((each) => each.name === plain))
        throw new RsmError('invalid', `${name} is ${plain} compressed: add ${plain} first`)
      if (signature !== undefined) {
        if (build.isXz) throw new RsmError('invalid', `${name}.sig: only the executable itself is signed`)
        checkSignature(signature, name, { arch: build.arch, sha256: await sha256OfFile(path) })
      }
      const target = join(directory, name)
      // Remove the signature first: one of the previous executable must not stay beside the new one.
      if (!build.isXz) await rm(signatureOf(target), { force: true })
      await replaceDurably(path, target)
      if (signature !== undefined) await writeFileDurably(signatureOf(target), signature)
      // The old .xz belongs to the previous executable.
      if (!build.isXz) await drop(`${name}.xz`)
      const stored = await readFileFacts(target, name, false)
      added.set(name, stored)
      return toApi(stored)
    },
    async remove(name) {
      const found = added.get(name)
      if (!found) {
        const names = [...added.keys()].join(', ')
        throw new RsmError('not_found', `no release ${name} was added${names && `; added: ${names}`}`)
      }
      const release = await toApi(found)
      await drop(name)
      await drop(`${name}.xz`)
      return release
    },
  }
}
