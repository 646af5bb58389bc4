// What the pages of `optpart report` use of Apache ECharts; README.md tells how to bundle it.
import * as core from "echarts/core";
import { CustomChart, GraphChart, LineChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomInsideComponent,
  DataZoomSliderComponent,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TooltipComponent,
} from "echarts/components";
import { LabelLayout } from "echarts/features";
import { CanvasRenderer } from "echarts/renderers";

core.use([
  AriaComponent,
  CanvasRenderer,
  CustomChart,
  DataZoomInsideComponent,
  DataZoomSliderComponent,
  GraphChart,
  GridComponent,
  LabelLayout,
  LegendComponent,
  LineChart,
  MarkLineComponent,
  TooltipComponent,
]);

export const { init, version } = core;
