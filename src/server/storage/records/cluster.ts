export interface ClusterRecord {
  id: number
  name: string
  description: string
  /** Members of a static cluster; empty for a dynamic one. */
  hostIds: number[]
  selector: string | null
  createdAt: string
  updatedAt: string
}
