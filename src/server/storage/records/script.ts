import type { ScriptType } from '../../../core/scripts/script-form.ts'

export interface ScriptRecord {
  id: number
  name: string
  description: string
  type: ScriptType
  content: string
  timeout: number | null
  tags: string[]
  category: string | null
  version: number
  sha256: string
  createdBy: string
  /** Who made this version; absent in records that were written before versions were kept. */
  changedBy?: string
  createdAt: string
  updatedAt: string
}
