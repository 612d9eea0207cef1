"""All charts. One definition serves notebooks, PDF, SVG, PNG and web pages.

The functions take tidy tables and return Altair charts; `save` renders them without a browser.
"""

from evenhand.charts._style import COLOURS as COLOURS
from evenhand.charts._style import FORMATS as FORMATS
from evenhand.charts._style import save as save
from evenhand.charts._style import to_svg as to_svg
from evenhand.charts.bias import bias_chart as bias_chart
from evenhand.charts.bias import windows_chart as windows_chart
from evenhand.charts.decomposition import decomposition_chart as decomposition_chart
from evenhand.charts.intersections import cells_chart as cells_chart
from evenhand.charts.runs import regret_chart as regret_chart
from evenhand.charts.runs import share_chart as share_chart
from evenhand.charts.runs import shares_over_time as shares_over_time
from evenhand.charts.true_regret import rate_chart as rate_chart
from evenhand.charts.true_regret import true_regret_chart as true_regret_chart
