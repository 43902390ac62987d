import { type FileHandle, open, readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { RsmError } from '../../../../core/errors.ts'
import { nullWhereMissing } from '../../../../disk/durable.ts'

/** Suffix of the checksum file beside a recording, because asciicast has no place for checksums. */
export const sumsSuffix = '.sums'
const readBytes = 256 * 1024

/** CRC-32 of the bytes from the previous `end` to this one. */
interface Sum {
  readonly end: number
  readonly check: number
}

/** Checked length of a recording, and the checksum of the bytes in its file beyond that. */
export interface SumState {
  readonly end: number
  readonly check: number
}

export const lineOfSum = ({ end, check }: Sum): string => `${end} ${check.toString(16).padStart(8, '0')}\n`

/** Checksums of a recording; empty for one of 0.1.0. A last line torn by a crash is ignored. */
async function readSums(path: string): Promise<Sum[]> {
  const text = (await readFile(path + sumsSuffix, 'latin1').catch(nullWhereMissing)) ?? ''
  const sums: Sum[] = []
  const lines = text.split('\n')
  lines.pop()
  for (const [at, line] of lines.entries()) {
    const found = /^(\d{1,15}) ([0-9a-f]{8})$/.exec(line)
    const end = Number(found?.[1])
    if (!found || end <= (sums.at(-1)?.end ?? 0))
      throw damaged(`${path}${sumsSuffix}, line ${at + 1} of its checksums`)
    sums.push({ end, check: Number.parseInt(found[2] ?? '', 16) })
  }
  return sums
}

function damaged(place: string): RsmError {
  return new RsmError('gone', `the recording is damaged: ${place}`, {
    hint: 'restore it from a backup',
  })
}

/** CRC-32 of a part of a file; NaN if the file is shorter. */
async function checkOf(file: FileHandle, from: number, to: number): Promise<number> {
  const buffer = Buffer.allocUnsafe(Math.min(readBytes, Math.max(1, to - from)))
  let check = 0
  for (let at = from; at < to; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, to - at), at)
    if (bytesRead === 0) return Number.NaN
    check = crc32(buffer.subarray(0, bytesRead), check)
    at += bytesRead
  }
  return check
}

/** Verifies `size` of `expected` bytes. Errors: `gone` with file and position if they are damaged. */
export async function verifyRecording(path: string, size: number, expected: number): Promise<void> {
  if (size < expected) throw damaged(`${path} ends at byte ${size}, not ${expected}`)
  const sums = await readSums(path)
  const file = await open(path, 'r')
  try {
    let from = 0
    for (const { end, check } of sums) {
      // The checksums of a recording in progress may be ahead of the requested bytes.
      if (end > size) break
      if ((await checkOf(file, from, end)) !== check) throw damaged(`${path}, bytes ${from} to ${end}`)
      from = end
    }
  } finally {
    await file.close()
  }
}

/** Opens the checksums of a recording that was truncated to `size` bytes, to append to them. */
export async function reopenSums(path: string, size: number): Promise<{ file: FileHandle; state: SumState }> {
  const sums = (await readSums(path)).filter(({ end }) => end <= size)
  const end = sums.at(-1)?.end ?? 0
  const file = await open(path + sumsSuffix, 'a', 0o600)
  try {
    const kept = sums.reduce((bytes, sum) => bytes + lineOfSum(sum).length, 0)
    await file.truncate(kept)
    const cast = await open(path, 'r')
    try {
      return { file, state: { end, check: await checkOf(cast, end, size) } }
    } finally {
      await cast.close()
    }
  } catch (error) {
    await file.close()
    throw error
  }
}
