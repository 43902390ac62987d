import type { TerminalSite } from '../../../src/server/storage/ports/cluster.ts'
import type { Attachment } from '../../../src/server/storage/ports/terminals.ts'

/** An attachment to a terminal that ignores everything. */
export const idleAttachment: Attachment = {
  input: () => undefined,
  resize: () => undefined,
  acknowledge: () => undefined,
  leave: () => undefined,
  gone: () => undefined,
  parted: () => undefined,
}

/** The site of a server without sessions. */
export const noSite: TerminalSite = {
  open: async () => undefined,
  has: async () => false,
  isAttachable: async () => false,
  expect: async () => undefined,
  attach: () => idleAttachment,
  end: async () => undefined,
  live: async (record) => ({ record, watchers: [], recordingBytes: 0 }),
  handOver: async () => null,
}
