import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'

const library = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'

/** The reason why no clock can be faked here, or null. */
export const noFaketime: string | null = existsSync(library) ? null : 'Debian: apt-get install faketime'

/** Environment of a process whose wall clock is off by the text of a file, such as `+40d`; its other clocks stay true. */
export function fakedBy(file: string): NodeJS.ProcessEnv {
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
}

export async function setFaked(file: string, offset: string): Promise<void> {
  await writeFile(file, `${offset}\n`)
}
