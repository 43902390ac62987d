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
  /** Author of this version; absent in records from before versions were kept. */
  changedBy?: string
  createdAt: string
  updatedAt: string
}
