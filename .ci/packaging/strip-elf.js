// Does the work of `strip` for the machines of all releases, with the same bytes everywhere: removes everything that is not loaded
// at run time. Must run before the blob goes in: `strip` on the finished file destroys it.

/** Offsets within the header of a 64-bit ELF file, and within a header of its sections (elf(5)). */
const file = { sections: 40, sectionSize: 58, sectionCount: 60, namesAt: 62 }
const section = { type: 4, flags: 8, offset: 24, size: 32 }
const withoutBytes = 8
const isAllocated = 2n

const at = (bytes, offset) => Number(bytes.readBigUInt64LE(offset))

/** `bytes` of an executable without symbols and debug information, which must follow everything that is loaded. */
export function stripElf(bytes) {
  const start = at(bytes, file.sections)
  const size = bytes.readUInt16LE(file.sectionSize)
  const headers = Array.from({ length: bytes.readUInt16LE(file.sectionCount) }, (_, index) =>
    bytes.subarray(start + index * size, start + (index + 1) * size),
  )
  const isLoaded = (header, index) =>
    index === 0 || (header.readBigUInt64LE(section.flags) & isAllocated) !== 0n
  const loaded = headers.filter(isLoaded)
  if (loaded.some((header, index) => header !== headers[index]))
    throw new Error('a section that is not loaded comes before one that is')
  const end = Math.max(
    ...loaded
      .filter((header) => header.readUInt32LE(section.type) !== withoutBytes)
      .map((header) => at(header, section.offset) + at(header, section.size)),
  )
  const names = Buffer.from(headers[bytes.readUInt16LE(file.namesAt)])
  const nameBytes = bytes.subarray(
    at(names, section.offset),
    at(names, section.offset) + at(names, section.size),
  )
  const padding = Buffer.alloc(-(end + nameBytes.length) & 7)
  names.writeBigUInt64LE(BigInt(end), section.offset)
  const stripped = Buffer.concat([bytes.subarray(0, end), nameBytes, padding, ...loaded, names])
  stripped.writeBigUInt64LE(BigInt(end + nameBytes.length + padding.length), file.sections)
  stripped.writeUInt16LE(loaded.length + 1, file.sectionCount)
  stripped.writeUInt16LE(loaded.length, file.namesAt)
  return stripped
}
