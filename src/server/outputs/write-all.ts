import type { FileHandle } from 'node:fs/promises'

/** Writes the whole buffer at a position, however short the system writes. */
export async function writeAll(file: FileHandle, buffer: Buffer, position: number): Promise<void> {
  for (let done = 0; done < buffer.length; ) {
    const { bytesWritten } = await file.write(buffer, done, buffer.length - done, position + done)
    done += bytesWritten
  }
}
