import { showBytes } from '../../cli/text/bytes.ts'
import type { Progress } from './upload.ts'

interface UploadBarProps {
  progress: Progress
  onStop: () => void
}

/** How far a file is on its way to the server. */
export function UploadBar({ progress: { sent, size, trouble }, onStop }: UploadBarProps) {
  return (
    <div class="upload">
      <progress value={sent} max={Math.max(size, 1)} aria-label="Upload" />
      <span role="status">{`${showBytes(sent)} of ${showBytes(size)}`}</span>
      <button type="button" onClick={onStop}>
        Stop
      </button>
      {trouble !== '' && <small class="fault">{trouble}</small>}
    </div>
  )
}
