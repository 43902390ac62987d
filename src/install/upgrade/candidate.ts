import { execFile } from 'node:child_process'
import { createReadStream, readFileSync } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { RsmError } from '../../core/errors.ts'
import { isDiskFull, removeStale, temporaryName } from '../../disk/durable.ts'
import { whyUnreadable, whyUnwritable } from '../../disk/named-files.ts'
import { packageManagerOf, signedRelease, writeExecutable } from '../../disk/new-release.ts'
import { ownReleaseKey } from '../../disk/own-release.ts'

const run = promisify(execFile)
/** Milliseconds for an executable to print its version. */
const patience = 30_000

/** A verified, durable executable beside the one that it will replace. */
export interface Candidate {
  readonly path: string
  readonly version: string
  readonly sha256: string
  /** Whether it is signed by the release key of this build. */
  readonly isSigned: boolean
}

interface Wanted {
  readonly file: string
  readonly target: string
  readonly sha256: string | undefined
  /** Accept an executable without `sha256`, in a build without a release key. */
  readonly allowUnsigned: boolean
}

function refuse(file: string, why: string, hint = 'nothing was changed; download the release again'): never {
  throw new RsmError('invalid', `${file} ${why}`, { hint })
}

async function* bytesOf(file: string): AsyncGenerator<Buffer> {
  for await (const chunk of createReadStream(file)) yield chunk as Buffer
}

/** Runs the file, which shows that it works on this machine. */
async function versionOf(file: string, path: string): Promise<string> {
  const said = await run(path, ['--version'], { timeout: patience }).catch((error: unknown) => {
    const { code, stderr = '', message } = error as { code?: unknown; stderr?: string; message: string }
    const why = stderr.trim().split('\n').at(-1) || (typeof code === 'string' ? code : message)
    return refuse(
      file,
      `does not run on this machine: ${why}`,
      'nothing was changed; use the executable for this architecture (uname -m)',
    )
  })
  const [, version] = /^rsm\/(\S+) /.exec(said.stdout) ?? []
  return version ?? refuse(file, 'is not an rsm executable: it does not print its version')
}

/**
 * Null for an accepted file in a build without a release key. Errors: `invalid` if the file is not accepted,
 * or if the release key has not signed this checksum.
 */
function checkSignature({ file, sha256: wanted, allowUnsigned }: Wanted, sha256: string) {
  const key = ownReleaseKey()
  if (key === null) {
    if (wanted !== undefined || allowUnsigned) return null
    return refuse(
      file,
      'cannot be checked: this build of rsm has no release key',
      'nothing was changed; add --sha256 HEX from SHA256SUMS of the release, or --allow-unsigned',
    )
  }
  let text = ''
  try {
    text = readFileSync(`${file}.sig`, 'utf8')
  } catch {
    return refuse(
      file,
      `has no signature: there is no ${file}.sig`,
      'nothing was changed; put the .sig of the release beside it',
    )
  }
  const release = signedRelease(key, text, sha256)
  if (release === 'malformed') return refuse(`${file}.sig`, 'is not the signature of a release')
  if (release === 'other file') return refuse(file, `is not the file that ${file}.sig signs`)
  if (release === 'other key') return refuse(file, 'is not signed by the release key of this rsm')
  return release
}

/**
 * Copies the file beside its target and verifies the copy. Removes the copy on errors: `usage` for an
 * unreadable file or an unwritable directory, `unavailable` on a full disk, `invalid` if it is not an rsm for
 * this machine.
 */
export async function prepare(given: Wanted): Promise<Candidate> {
  const { file, target, sha256: wanted } = given
  const found = await stat(file).catch((cause: unknown) => {
    throw new RsmError('usage', `cannot read ${file}: ${whyUnreadable(cause)}`, { cause })
  })
  if (!found.isFile()) throw new RsmError('usage', `${file} is not a file`)
  await removeStale(target)
  const path = temporaryName(target)
  try {
    const sha256 = await writeExecutable(bytesOf(file), path, 0o755).catch((cause: unknown) => {
      const isFull = isDiskFull(cause)
      throw new RsmError(
        isFull ? 'unavailable' : 'usage',
        `cannot copy ${file} beside ${target}: ${whyUnwritable(cause)}`,
        {
          hint: isFull ? 'nothing was changed; make room there' : 'nothing was changed; run this as root',
          cause,
        },
      )
    })
    if (wanted !== undefined && wanted.toLowerCase() !== sha256)
      refuse(file, `has the sha256 ${sha256}, not ${wanted}`)
    // Check the signature first: an unsigned file must not be run as root, not even for its version.
    const release = checkSignature(given, sha256)
    const version = await versionOf(file, path)
    if (release !== null && release.version !== version)
      refuse(file, `is version ${version}, but its signature is for ${release.version}`)
    return { path, version, sha256, isSigned: release !== null }
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
}

/** Errors: `conflict` for a file that belongs to a package. */
export async function refusePackaged(target: string): Promise<void> {
  const manager = await packageManagerOf(target)
  if (manager === null) return
  const line =
    manager === 'dpkg' ? 'apt install ./rsm_VERSION_amd64.deb' : 'dnf install ./rsm-VERSION.x86_64.rpm'
  throw new RsmError('conflict', `${target} belongs to a package (${manager})`, {
    hint: `upgrade the package: \`${line}\`; it restarts the server`,
  })
}
